/**
 * What a client asks before anything else: which groups, versions and kinds there are, and the little OpenAPI without
 * which `kubectl create` will not send.
 */
import type { Registry, Served } from "./registry.ts";

/** The API server whose behaviour is imitated. */
export const VERSION = { major: "1", minor: "35", gitVersion: "v1.35.4" };

const VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

const groupVersion = (group: string, version: string) => (group ? `${group}/${version}` : version);

/** The document at `path`, or undefined when there is none. */
export function discover(path: string, registry: Registry): unknown {
  switch (path) {
    case "/version":
      return {
        ...VERSION,
        gitCommit: "",
        gitTreeState: "clean",
        buildDate: "1970-01-01T00:00:00Z",
        goVersion: "",
        compiler: "",
        platform: "linux/amd64",
      };
    case "/api":
      return { kind: "APIVersions", versions: ["v1"], serverAddressByClientCIDRs: [] };
    case "/apis":
      return {
        kind: "APIGroupList",
        apiVersion: "v1",
        groups: [...registry.groups().keys(), "authorization.k8s.io"]
          .filter(Boolean)
          .map((name) => group(name, registry)),
      };
    case "/openapi/v3":
      return { paths: Object.fromEntries(documents(registry)) };
    default:
      return below(path, registry);
  }
}

function below(path: string, registry: Registry): unknown {
  const [, root, first = "", second] = path.split("/");
  if (path.startsWith("/openapi/v3/")) return openapi(path.slice("/openapi/v3/".length), registry);
  if (root === "api" && second === undefined) return first === "v1" ? resources("", "v1", registry) : undefined;
  if (root !== "apis") return undefined;
  const known = first === "authorization.k8s.io" || registry.groups().has(first);
  if (!first || !known) return undefined;
  return second === undefined
    ? { kind: "APIGroup", apiVersion: "v1", ...group(first, registry) }
    : resources(first, second, registry);
}

function group(name: string, registry: Registry) {
  const versions = (registry.groups().get(name) ?? ["v1"]).map((version) => ({
    groupVersion: groupVersion(name, version),
    version,
  }));
  return { name, versions, preferredVersion: versions[0] };
}

function resources(group: string, version: string, registry: Registry): unknown {
  const served = registry.inVersion(group, version);
  const list =
    group === "authorization.k8s.io" ? [review] : served.flatMap((one) => [mainResource(one), ...subresources(one)]);
  if (list.length === 0) return undefined;
  return { kind: "APIResourceList", apiVersion: "v1", groupVersion: groupVersion(group, version), resources: list };
}

/** `kubectl auth can-i` asks; everything is allowed here. */
const review = {
  name: "selfsubjectaccessreviews",
  singularName: "selfsubjectaccessreview",
  namespaced: false,
  kind: "SelfSubjectAccessReview",
  verbs: ["create"],
};

const mainResource = ({ resource }: Served) => ({
  name: resource.plural,
  singularName: resource.singular,
  namespaced: resource.namespaced,
  kind: resource.kind,
  verbs: VERBS,
  ...(resource.shortNames.length > 0 && { shortNames: resource.shortNames }),
  ...(resource.categories.length > 0 && { categories: resource.categories }),
});

function subresources({ resource }: Served) {
  const sub = (name: string, kind: string, verbs: readonly string[]) => ({
    name: `${resource.plural}/${name}`,
    singularName: "",
    namespaced: resource.namespaced,
    kind,
    verbs,
  });
  return [
    ...(resource.hasStatus ? [sub("status", resource.kind, ["get", "patch", "update"])] : []),
    ...(resource.id === "/pods" ? [sub("log", "Pod", ["get"]), sub("binding", "Binding", ["create"])] : []),
  ];
}

function* documents(registry: Registry): Iterable<[string, object]> {
  for (const [group, versions] of registry.groups()) {
    for (const version of versions) {
      const name = group ? `apis/${group}/${version}` : `api/${version}`;
      yield [name, { serverRelativeURL: `/openapi/v3/${name}` }];
    }
  }
}

/** One PATCH for each kind: from it kubectl learns that the server checks fields itself, and leaves it to do so. */
function openapi(name: string, registry: Registry): unknown {
  const [, group, version] = name.startsWith("api/") ? ["", "", name.slice(4)] : name.split("/");
  const served = registry.inVersion(group ?? "", version ?? "");
  if (served.length === 0) return undefined;
  const parameter = (name: string) => ({ name, in: "query", schema: { type: "string", uniqueItems: true } });
  return {
    openapi: "3.0.0",
    info: { title: "Kubernetes", version: VERSION.gitVersion },
    paths: Object.fromEntries(
      served.map(({ resource }) => [
        `/${name}/${resource.namespaced ? "namespaces/{namespace}/" : ""}${resource.plural}/{name}`,
        {
          patch: {
            parameters: ["dryRun", "fieldManager", "fieldValidation", "force"].map(parameter),
            responses: { 200: { description: "OK" } },
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": { group, version, kind: resource.kind },
          },
        },
      ]),
    ),
    components: {
      schemas: Object.fromEntries(
        served.map((one) => [
          `${group || "core"}.${version}.${one.resource.kind}`,
          {
            // `kubectl explain` reads the schemas of custom kinds; those of built-in kinds may contain themselves.
            ...(one.resource.custom ? one.version.schema : { type: "object" }),
            "x-kubernetes-group-version-kind": [{ group, version, kind: one.resource.kind }],
          },
        ]),
      ),
    },
  };
}
