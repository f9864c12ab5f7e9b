/** The kinds that are there from the start. */
import type { Resource } from "../registry.ts";
import { configMaps, endpointSlices, leases, namespaces, nodes, secrets, serviceAccounts } from "./core.ts";
import { customResourceDefinitions } from "./definition.ts";
import { events } from "./event.ts";
import { jobs } from "./job.ts";
import { pods } from "./pod.ts";
import { services } from "./service.ts";

export const builtInKinds: readonly Resource[] = [
  pods,
  services,
  configMaps,
  secrets,
  namespaces,
  nodes,
  serviceAccounts,
  events,
  jobs,
  leases,
  endpointSlices,
  customResourceDefinitions,
];
