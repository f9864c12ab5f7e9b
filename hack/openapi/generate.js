/**
 * Makes src/api/generated from the API server's own OpenAPI, so that the Kubernetes types we read and the Pod templates
 * in our CRDs are those of one named Kubernetes release, and nobody types them by hand.
 *
 * Runs only when that release changes: `cd hack/openapi && npm ci && npm run generate`. Needs Go (for the module
 * k8s.io/kubernetes, of which only the OpenAPI is read) and TypeScript 5 (for the generator), hence a package of its own.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import ts from "typescript";

const RELEASE = "v1.35.4";

const GROUPS = [
  "api__v1",
  "apis__apiextensions.k8s.io__v1",
  "apis__batch__v1",
  "apis__coordination.k8s.io__v1",
  "apis__discovery.k8s.io__v1",
  "apis__events.k8s.io__v1",
  "apis__networking.k8s.io__v1",
];

/** The kinds that become TypeScript types, with all that they contain. */
const TYPES = [
  "io.k8s.api.batch.v1.Job",
  "io.k8s.api.coordination.v1.Lease",
  "io.k8s.api.core.v1.ConfigMap",
  "io.k8s.api.core.v1.Namespace",
  "io.k8s.api.core.v1.Node",
  "io.k8s.api.core.v1.Pod",
  "io.k8s.api.core.v1.PodTemplateSpec",
  "io.k8s.api.core.v1.Secret",
  "io.k8s.api.core.v1.Service",
  "io.k8s.api.core.v1.ServiceAccount",
  "io.k8s.api.discovery.v1.EndpointSlice",
  "io.k8s.api.events.v1.Event",
  "io.k8s.api.networking.v1.IngressTLS",
  "io.k8s.api.networking.v1.NetworkPolicyEgressRule",
  "io.k8s.api.networking.v1.NetworkPolicyIngressRule",
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
];

/** The parts that our CRDs contain: kept as structural schemas. */
const SCHEMAS = [
  "io.k8s.api.core.v1.EnvFromSource",
  "io.k8s.api.core.v1.EnvVar",
  "io.k8s.api.core.v1.EnvVarSource",
  "io.k8s.api.core.v1.PodTemplateSpec",
  "io.k8s.api.core.v1.ResourceRequirements",
  "io.k8s.api.core.v1.SecurityContext",
  "io.k8s.api.core.v1.Service",
  "io.k8s.api.core.v1.VolumeMount",
  "io.k8s.api.networking.v1.IngressTLS",
  "io.k8s.api.networking.v1.NetworkPolicyEgressRule",
  "io.k8s.api.networking.v1.NetworkPolicyIngressRule",
];

/**
 * Go embeds a LocalObjectReference in these. It is replaced as a whole, and so are they in KubeRay's definitions, while
 * the OpenAPI has lost the mark.
 */
const ATOMIC = [
  "ConfigMapEnvSource",
  "ConfigMapProjection",
  "ConfigMapVolumeSource",
  "SecretEnvSource",
  "SecretProjection",
];

const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";
const REF = "#/components/schemas/";
const OUT = new URL("../../src/api/generated/", import.meta.url);

const all = readOpenAPI();
mkdirSync(OUT, { recursive: true });
writeFileSync(new URL("kubernetes.ts", OUT), await types());
writeFileSync(new URL("structural.json", OUT), `${JSON.stringify(structural(), null, 1)}\n`);

/** Every schema of the groups above by its full name, from Go's module cache. */
function readOpenAPI() {
  const folder = mkdtempSync(join(tmpdir(), "openapi-"));
  try {
    const go = (...args) => execFileSync("go", args, { cwd: folder, env: { ...process.env, GOFLAGS: "-mod=mod" } });
    go("mod", "init", "openapi");
    const { Dir } = JSON.parse(go("mod", "download", "-json", `k8s.io/kubernetes@${RELEASE}`).toString());
    return Object.assign(
      {},
      ...GROUPS.map(
        (group) =>
          JSON.parse(readFileSync(join(Dir, "api/openapi-spec/v3", `${group}_openapi.json`), "utf8")).components
            .schemas,
      ),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The names reachable from `roots`, in order of the alphabet. `stop` is named but not entered. */
function reachable(schemas, roots, stop = []) {
  const seen = new Set();
  const visit = (name) => {
    if (seen.has(name) || stop.includes(name)) return;
    seen.add(name);
    JSON.stringify(schemas[name], (key, value) => {
      // One schema (JSONSchemaProps) has a property of that name.
      if (key === "$ref" && typeof value === "string") visit(value.slice(REF.length));
      return value;
    });
  };
  for (const root of roots) visit(root);
  return [...seen].sort();
}

/** The schema with every `$ref` bare (upstream wraps it in `allOf` beside a description) and what `strip` names gone. */
function simplify(schema, strip) {
  if (Array.isArray(schema)) return schema.map((item) => simplify(item, strip));
  if (schema === null || typeof schema !== "object") return schema;
  if (schema.allOf?.length === 1 && schema.allOf[0].$ref) return schema.allOf[0];
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key, value]) => !strip(key, value))
      .map(([key, value]) => [key, key === "properties" ? properties(value, strip) : simplify(value, strip)]),
  );
}

/** A property may be called like a keyword (`default`, `description`), so names are never stripped. */
function properties(map, strip) {
  return Object.fromEntries(Object.entries(map).map(([name, schema]) => [name, simplify(schema, strip)]));
}

async function types() {
  // Descriptions would make nine tenths of the file; a default would make the field required, which on the way to the
  // server it is not.
  const strip = (key) => key === "description" || key === "default";
  const schemas = Object.fromEntries(
    reachable(all, TYPES, [OBJECT_META]).map((name) => [name, simplify(all[name], strip)]),
  );
  schemas[QUANTITY] = { oneOf: [{ type: "string" }, { type: "number" }] };
  schemas[INT_OR_STRING] = { oneOf: [{ type: "integer" }, { type: "string" }] };
  const named = JSON.parse(
    JSON.stringify(schemas, (_, value) => (value?.$ref === REF + OBJECT_META ? { title: "ObjectMeta" } : value)),
  );
  const ast = await openapiTS(
    { openapi: "3.0.0", info: { title: "Kubernetes", version: RELEASE }, paths: {}, components: { schemas: named } },
    {
      inject: 'import type { ObjectMeta } from "../object.ts";\n',
      transform: (schema) =>
        schema.title === "ObjectMeta" ? ts.factory.createTypeReferenceNode("ObjectMeta") : undefined,
    },
  );
  return `// Kubernetes ${RELEASE}, made by hack/openapi. Do not edit.\n${astToString(ast)
    .replace(/^export (type|interface) (paths|webhooks|operations|\$defs)\b.*;\n/gm, "")
    .replace(/^ +(responses|parameters|requestBodies|headers|pathItems): never;\n/gm, "")
    .replaceAll("Record<string, never>", "Record<string, unknown>")}`;
}

/**
 * The parts of our CRDs as structural schemas, still referring to one another by short name: `{"$ref": "Container"}`.
 *
 * Descriptions are left out, since three Pod templates with them do not fit into one CRD. A default on a required field
 * would make it optional in a CRD, which it is not in Kubernetes, and one on a list's element would turn null into a
 * value, so only defaults of optional fields stay; the keys of list-maps need theirs (`protocol: TCP`), because the API
 * server refuses keys that may be absent.
 */
function structural() {
  const drop = [
    "description",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-unions",
  ];
  const strip = (key, value) => drop.includes(key) || (key === "default" && typeof value === "object");
  const short = (name) => name.slice(name.lastIndexOf(".") + 1);
  const names = reachable(all, SCHEMAS, [OBJECT_META, QUANTITY, INT_OR_STRING]);
  const clash = names.find((name) => names.some((other) => other !== name && short(other) === short(name)));
  if (clash) throw new Error(`two schemas are called ${short(clash)}`);
  return Object.fromEntries(
    names.map((name) => {
      const schema = simplify(all[name], strip);
      for (const field of schema.required ?? []) delete schema.properties[field].default;
      for (const field of Object.values(schema.properties ?? {})) {
        if (field.items) delete field.items.default;
        if (field.additionalProperties) delete field.additionalProperties.default;
      }
      if (ATOMIC.includes(short(name))) schema["x-kubernetes-map-type"] = "atomic";
      return [short(name), JSON.parse(JSON.stringify(schema, (key, value) => (key === "$ref" ? short(value) : value)))];
    }),
  );
}
