/**
 * Services: an address of their own, and what is refused. endpoints.ts finds the Pods behind them.
 */
import structural from "../../api/generated/structural.json" with { type: "json" };
import type { Service, ServiceSpec } from "../../api/kubernetes.ts";
import { type Cause, fault } from "../errors.ts";
import { type Item, textAt, thawed } from "../json.ts";
import { nameFaults } from "../names.ts";
import type { Resource, World } from "../registry.ts";
import { builtIn, linked, open } from "./builtIn.ts";
import { serviceColumns } from "./columns.ts";

const serviceSpec = linked(structural, "ServiceSpec");
const TYPES = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const FIRST_NODE_PORT = 30000;

export const services: Resource = builtIn({
  group: "",
  version: "v1",
  kind: "Service",
  plural: "services",
  shortNames: ["svc"],
  categories: ["all"],
  hasStatus: true,
  metadataThroughStatus: true,
  answersDeletionWithObject: true,
  names: "label1035",
  schema: { type: "object", properties: { spec: serviceSpec, status: open } },
  columns: serviceColumns,
  firstStatus: () => ({ loadBalancer: {} }),
  complete(item, old, world) {
    const service = thawed(item) as Item & Service;
    if (service.spec) completeSpec(service.spec, (old as unknown as Service | undefined)?.spec, world);
    return service;
  },
  validate(item, old, _, part) {
    const spec = (item as unknown as Service).spec;
    if (part === "subresource" || item.spec === old?.spec) return [];
    if (!spec) return [fault.required("spec.ports")];
    return specFaults(spec, (old as unknown as Service | undefined)?.spec);
  },
  fields: {
    "spec.clusterIP": (item) => textAt(item, "spec", "clusterIP") ?? "",
    "spec.type": (item) => textAt(item, "spec", "type") ?? "",
  },
});

function completeSpec(spec: ServiceSpec, old: ServiceSpec | undefined, world: World): void {
  spec.type ??= "ClusterIP";
  spec.sessionAffinity ??= "None";
  for (const port of spec.ports ?? []) {
    port.protocol ??= "TCP";
    port.targetPort ??= port.port;
  }
  if (spec.type === "ExternalName") return;
  spec.internalTrafficPolicy ??= "Cluster";
  // An update may leave the address out; it stays.
  spec.clusterIP ||= old?.clusterIP || freeAddress(world);
  spec.clusterIPs = [spec.clusterIP];
  spec.ipFamilies ??= ["IPv4"];
  spec.ipFamilyPolicy ??= "SingleStack";
  if (spec.type === "ClusterIP") return;
  spec.externalTrafficPolicy ??= "Cluster";
  for (const port of spec.ports ?? []) {
    port.nodePort ||= old?.ports?.find((one) => one.port === port.port)?.nodePort ?? freeNodePort(world, spec);
  }
}

const all = ({ storage }: World) => storage.all("/services") as unknown as readonly Service[];

/** The first free address of 10.96.0.0/16 from 10.96.0.10 on. */
function freeAddress(world: World): string {
  const taken = new Set(all(world).map(({ spec }) => spec?.clusterIP));
  for (let number = 10; ; number++) {
    const address = `10.96.${number >> 8}.${number & 255}`;
    if (!taken.has(address)) return address;
  }
}

function freeNodePort(world: World, spec: ServiceSpec): number {
  const taken = new Set(
    [spec, ...all(world).map((one) => one.spec)].flatMap((one) => one?.ports?.map(({ nodePort }) => nodePort)),
  );
  for (let port = FIRST_NODE_PORT; ; port++) if (!taken.has(port)) return port;
}

function specFaults(spec: ServiceSpec, old: ServiceSpec | undefined): readonly Cause[] {
  const causes: Cause[] = [];
  if (!TYPES.includes(spec.type!)) causes.push(fault.unsupported("spec.type", spec.type, TYPES));
  const ports = spec.ports ?? [];
  if (ports.length === 0 && spec.type !== "ExternalName" && spec.clusterIP !== "None") {
    causes.push(fault.required("spec.ports"));
  }
  const names = new Set<string>();
  for (const [index, { name, port }] of ports.entries()) {
    const path = `spec.ports[${index}]`;
    if (port < 1 || port > 65535) {
      causes.push(fault.invalid(`${path}.port`, port, "must be between 1 and 65535, inclusive"));
    }
    if (!name && ports.length > 1) causes.push(fault.required(`${path}.name`));
    if (!name) continue;
    causes.push(...nameFaults(`${path}.name`, name, "label"));
    if (names.has(name)) causes.push(fault.duplicate(`${path}.name`, name));
    names.add(name);
  }
  if (
    old?.clusterIP &&
    old.type !== "ExternalName" &&
    spec.type !== "ExternalName" &&
    spec.clusterIP !== old.clusterIP
  ) {
    causes.push(fault.invalid("spec.clusterIPs[0]", spec.clusterIPs, "may not change once set"));
  }
  return causes;
}
