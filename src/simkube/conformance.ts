/**
 * What this project relies on an API server to do, as a suite that asks only through a Transport: simkube must pass it,
 * and so must a real kube-apiserver, which is how we know that the tests on simkube mean something.
 *
 * May not: know which of the two it asks, reach behind the Transport, or wait for time to pass; it waits for what it
 * expects to see, on a watch. Cases that need controllers are skipped, by name, where none run.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject, ObjectMeta } from "../api/object.ts";
import type { KubeRequest, KubeResponse, Transport } from "../machinery/kube/transport.ts";
import type { Rule } from "./schema.ts";

export interface Target {
  readonly transport: Transport;
  /** Whether a garbage collector, a Job controller, an endpoints controller and a namespace controller run. */
  readonly controllers: boolean;
  readonly close?: () => Promise<void> | void;
}

type Any = KubeObject & { metadata: ObjectMeta; [field: string]: unknown };
interface StatusBody {
  kind: string;
  reason: string;
  message: string;
  details: { name: string; causes: { field: string; reason: string; message: string }[] };
}

const GROUP = "conformance.raykeeper.dev";
/** What CEL says of the widget's specification; a server without CEL needs these as functions. */
export const widgetRules: readonly Rule[] = [
  {
    rule: "!has(self.size) || !has(self.limit) || self.size <= self.limit",
    holds: (self) => {
      const { size, limit } = self as { size?: number; limit?: number };
      return size === undefined || limit === undefined || size <= limit;
    },
  },
  { rule: "self == oldSelf", holds: (self, oldSelf) => self === oldSelf },
];

const text = { type: "string" };
const specSchema = {
  type: "object",
  required: ["size"],
  "x-kubernetes-validations": [{ rule: widgetRules[0]!.rule, message: "size must not exceed limit" }],
  properties: {
    size: { type: "integer", format: "int32", minimum: 0, maximum: 100 },
    limit: { type: "integer" },
    colour: { type: "string", enum: ["red", "green"], default: "red" },
    code: { type: "string", maxLength: 4, pattern: "^[a-z]*$" },
    at: { type: "string", format: "date-time" },
    port: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] },
    maybe: { type: "string", nullable: true },
    fixed: { type: "string", "x-kubernetes-validations": [{ rule: "self == oldSelf", message: "fixed is immutable" }] },
    tags: { type: "array", items: text, "x-kubernetes-list-type": "set", maxItems: 3 },
    few: { type: "array", items: text, minItems: 1 },
    parts: {
      type: "array",
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
      items: {
        type: "object",
        required: ["name"],
        properties: { name: text, count: { type: "integer", default: 1 } },
      },
    },
    options: { type: "object", additionalProperties: text },
    free: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
    template: {
      type: "object",
      "x-kubernetes-embedded-resource": true,
      properties: { spec: { type: "object", properties: { known: text } } },
    },
    nested: { type: "object", default: {}, properties: { deep: { type: "boolean", default: true } } },
  },
};
const version = (name: string, storage: boolean) => ({
  name,
  served: true,
  storage,
  subresources: { status: {} },
  additionalPrinterColumns: [
    { name: "Size", type: "integer", jsonPath: ".spec.size" },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ],
  schema: {
    openAPIV3Schema: {
      type: "object",
      properties: {
        spec: specSchema,
        status: { type: "object", properties: { phase: text } },
      },
    },
  },
});
const crd = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `widgets.${GROUP}` },
  spec: {
    group: GROUP,
    scope: "Namespaced",
    names: { kind: "Widget", plural: "widgets", singular: "widget", listKind: "WidgetList", shortNames: ["wd"] },
    versions: [version("v1", true), version("v1beta1", false)],
  },
};
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/** A real garbage collector learns of a new kind only after half a minute. */
const PATIENCE = 60_000;

/** Declares the suite; `makeTarget` is called once. */
export function conformance(name: string, makeTarget: () => Promise<Target> | Target): void {
  describe(`an API server (${name})`, { timeout: 2 * PATIENCE }, () => {
    let target: Target;
    let ns = "";
    const made: string[] = [];

    const ask = (
      method: KubeRequest["method"],
      path: string,
      body?: unknown,
      more: Pick<KubeRequest, "query" | "headers"> = {},
    ): Promise<KubeResponse> => target.transport.request({ method, path, body, ...more });
    const must = async (...args: Parameters<typeof ask>): Promise<Any> => {
      const { status, body } = await ask(...args);
      expect(status, JSON.stringify(body)).toBeLessThan(300);
      return body as Any;
    };
    const refused = async (code: number, ...args: Parameters<typeof ask>): Promise<StatusBody> => {
      const { status, body } = await ask(...args);
      expect(status, JSON.stringify(body)).toBe(code);
      expect((body as StatusBody).kind).toBe("Status");
      return body as StatusBody;
    };
    const put = (path: string, body: unknown) => must("PUT", path, body);
    const merge = (path: string, body: unknown, query?: Record<string, string>) =>
      must("PATCH", path, body, { query, headers: { "content-type": "application/merge-patch+json" } });
    const json = (body: unknown): [unknown, Pick<KubeRequest, "headers">] => [
      body,
      { headers: { "content-type": "application/json-patch+json" } },
    ];

    const core = (plural: string, name?: string) => `/api/v1/namespaces/${ns}/${plural}${name ? `/${name}` : ""}`;
    const widgets = (name?: string, version = "v1") =>
      `/apis/${GROUP}/${version}/namespaces/${ns}/widgets${name ? `/${name}` : ""}`;
    const jobs = (name?: string) => `/apis/batch/v1/namespaces/${ns}/jobs${name ? `/${name}` : ""}`;

    const widget = (name: string, spec: object = { size: 1 }, metadata: Partial<ObjectMeta> = {}) => ({
      apiVersion: `${GROUP}/v1`,
      kind: "Widget",
      metadata: { name, ...metadata },
      spec,
    });
    const configMap = (name: string, metadata: Partial<ObjectMeta> = {}) => ({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, ...metadata },
      data: { a: "1" },
    });
    const pod = (name: string, metadata: Partial<ObjectMeta> = {}, spec: object = {}) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, ...metadata },
      spec: { containers: [{ name: "main", image: "busybox" }], ...spec },
    });
    const job = (name: string, spec: object = {}) => ({
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: { name },
      spec: {
        template: { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "busybox" }] } },
        ...spec,
      },
    });
    const ownedBy = (owner: Any, more: object = {}) => ({
      ownerReferences: [
        {
          apiVersion: owner.apiVersion!,
          kind: owner.kind!,
          name: owner.metadata.name!,
          uid: owner.metadata.uid!,
          ...more,
        },
      ],
    });

    /** The events of a watch, until the caller has had enough. */
    async function* watch(path: string, query: Record<string, string> = {}) {
      const signal = AbortSignal.timeout(PATIENCE);
      const { status, lines, body } = await target.transport.stream(
        { method: "GET", path, query: { watch: "true", ...query } },
        { signal },
      );
      expect(status, JSON.stringify(body)).toBe(200);
      for await (const line of lines) if (line) yield JSON.parse(line) as { type: string; object: Any };
    }
    /** Resolves with the object (undefined when it is gone) as soon as it is as wanted. */
    async function until(path: string, name: string, wanted: (object: Any | undefined) => boolean) {
      const query = { fieldSelector: `metadata.name=${name}` };
      const list = (await must("GET", path, undefined, { query })) as Any & { items: Any[] };
      let object: Any | undefined = list.items[0];
      if (wanted(object)) return object;
      for await (const event of watch(path, { ...query, resourceVersion: list.metadata.resourceVersion! })) {
        object = event.type === "DELETED" ? undefined : event.object;
        if (wanted(object)) return object;
      }
      throw new Error(`${path}/${name} never became what was expected: ${JSON.stringify(object)}`);
    }
    const gone = (path: string, name: string) => until(path, name, (object) => object === undefined);
    const take = async (events: AsyncGenerator<{ type: string; object: Any }>, count: number) => {
      const taken: string[] = [];
      while (taken.length < count) {
        const { value, done } = await events.next();
        if (done) break;
        if (value.type !== "BOOKMARK") taken.push(`${value.type} ${value.object.metadata.name}`);
      }
      await events.return(undefined);
      return taken;
    };
    const names = (list: Any) => (list.items as Any[]).map(({ metadata }) => metadata.name).sort();

    beforeAll(async () => {
      target = await makeTarget();
      await must("POST", CRDS, crd);
      await until(CRDS, crd.metadata.name, (object) =>
        Boolean(
          (object?.status as { conditions?: { type: string; status: string }[] })?.conditions?.some(
            ({ type, status }) => type === "Established" && status === "True",
          ),
        ),
      );
    });
    // A throw-away cluster is still to be asked twice.
    afterAll(async () => {
      for (const one of made) await ask("DELETE", `/api/v1/namespaces/${one}`);
      await ask("DELETE", `${CRDS}/${crd.metadata.name}`);
      await gone(CRDS, crd.metadata.name);
      await target.close?.();
    }, PATIENCE);
    beforeEach(async () => {
      const { metadata } = await must("POST", "/api/v1/namespaces", { metadata: { generateName: "conformance-" } });
      ns = metadata.name!;
      made.push(ns);
    });
    /** A case that needs a controller to move. */
    const withControllers = (name: string, run: () => Promise<void>) =>
      it(name, async (context) => {
        if (!target.controllers) context.skip("no controllers run beside this API server");
        await run();
      });

    describe("an object", () => {
      it("gets a UID, a creation time, a version and generation 1 when it is created", async () => {
        const made = await must("POST", widgets(), widget("a"));
        expect(made.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
        expect(made.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        expect(made.metadata.resourceVersion).toMatch(/^\d+$/);
        expect(made.metadata).toMatchObject({ name: "a", namespace: ns, generation: 1 });
      });
      it("is answered with 201 when created", async () => {
        expect((await ask("POST", core("configmaps"), configMap("a"))).status).toBe(201);
      });
      it("is read as it was written", async () => {
        const made = await must("POST", widgets(), widget("a", { size: 3 }));
        expect(await must("GET", widgets("a"))).toEqual(made);
      });
      it("cannot be created twice", async () => {
        await must("POST", core("configmaps"), configMap("a"));
        const { reason, message } = await refused(409, "POST", core("configmaps"), configMap("a"));
        expect(reason).toBe("AlreadyExists");
        expect(message).toBe('configmaps "a" already exists');
      });
      it("cannot be created in a namespace that does not exist", async () => {
        const { reason, message } = await refused(404, "POST", "/api/v1/namespaces/nowhere/configmaps", configMap("a"));
        expect(reason).toBe("NotFound");
        expect(message).toContain('namespaces "nowhere" not found');
      });
      it("cannot be created in another namespace than the path's", async () => {
        const { reason } = await refused(400, "POST", core("configmaps"), configMap("a", { namespace: "other" }));
        expect(reason).toBe("BadRequest");
      });
      it("gets five characters behind its generateName", async () => {
        const made = await must("POST", core("pods"), pod(undefined as never, { generateName: "work-" }));
        expect(made.metadata.name).toMatch(/^work-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      });
      it("needs a name or a generateName", async () => {
        const { reason, message } = await refused(422, "POST", widgets(), widget(undefined as never));
        expect(reason).toBe("Invalid");
        expect(message).toContain("name or generateName is required");
      });
      it("needs a name that is a DNS subdomain", async () => {
        const { reason, details } = await refused(422, "POST", widgets(), widget("Not_A_Name"));
        expect(reason).toBe("Invalid");
        expect(details.causes[0]).toMatchObject({ field: "metadata.name", reason: "FieldValueInvalid" });
      });
      it("needs labels that are labels", async () => {
        const { message } = await refused(
          422,
          "POST",
          core("configmaps"),
          configMap("a", { labels: { app: "not a label!" } }),
        );
        expect(message).toContain('metadata.labels: Invalid value: "not a label!"');
      });
      it("that does not exist is told with kind and name", async () => {
        const { reason, message, details } = await refused(404, "GET", widgets("nobody"));
        expect(reason).toBe("NotFound");
        expect(message).toBe(`widgets.${GROUP} "nobody" not found`);
        expect(details.name).toBe("nobody");
      });
      it("of a kind that does not exist is a path that does not exist", async () => {
        await ask("GET", `/apis/${GROUP}/v1/namespaces/${ns}/gadgets`).then(({ status }) => expect(status).toBe(404));
      });
      it("must be of the kind that the path names", async () => {
        const { message } = await refused(422, "POST", widgets(), { ...widget("a"), kind: "Gadget" });
        expect(message).toContain('kind: Invalid value: "Gadget": must be Widget');
        await refused(400, "POST", core("configmaps"), { ...configMap("a"), kind: "Secret" });
      });
    });

    describe("a change", () => {
      it("raises the version", async () => {
        const made = await must("POST", widgets(), widget("a"));
        const changed = await merge(widgets("a"), { spec: { size: 2 } });
        expect(Number(changed.metadata.resourceVersion)).toBeGreaterThan(Number(made.metadata.resourceVersion));
      });
      it("that says nothing new makes no new version", async () => {
        const made = await must("POST", widgets(), widget("a"));
        const same = await merge(widgets("a"), { spec: { size: 1 } });
        expect(same.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
        const again = await put(widgets("a"), made);
        expect(again.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
      });
      it("made from an old version is a conflict", async () => {
        const made = await must("POST", widgets(), widget("a"));
        await merge(widgets("a"), { spec: { size: 2 } });
        const { reason, message } = await refused(409, "PUT", widgets("a"), { ...made, spec: { size: 3 } });
        expect(reason).toBe("Conflict");
        expect(message).toContain(`Operation cannot be fulfilled on widgets.${GROUP} "a"`);
        expect((await must("GET", widgets("a"))).spec).toMatchObject({ size: 2 });
      });
      it("by merge patch that carries an old version is a conflict", async () => {
        const { metadata } = await must("POST", widgets(), widget("a"));
        await merge(widgets("a"), { spec: { size: 2 } });
        const { reason } = await refused(
          409,
          "PATCH",
          widgets("a"),
          { metadata: { resourceVersion: metadata.resourceVersion }, spec: { size: 3 } },
          { headers: { "content-type": "application/merge-patch+json" } },
        );
        expect(reason).toBe("Conflict");
      });
      it("by JSON patch that carries an old version is a conflict", async () => {
        const { metadata } = await must("POST", widgets(), widget("a"));
        await merge(widgets("a"), { spec: { size: 2 } });
        await refused(
          409,
          "PATCH",
          widgets("a"),
          ...json([
            { op: "replace", path: "/metadata/resourceVersion", value: metadata.resourceVersion },
            { op: "replace", path: "/spec/size", value: 3 },
          ]),
        );
      });
      it("to a custom object by PUT needs a version", async () => {
        await must("POST", widgets(), widget("a"));
        const { message } = await refused(422, "PUT", widgets("a"), widget("a", { size: 2 }));
        expect(message).toContain("metadata.resourceVersion: Invalid value");
        expect(message).toContain("must be specified for an update");
      });
      it("to a ConfigMap by PUT may go without a version", async () => {
        await must("POST", core("configmaps"), configMap("a"));
        const changed = await put(core("configmaps", "a"), { ...configMap("a"), data: { b: "2" } });
        expect(changed.data).toEqual({ b: "2" });
      });
      it("meant for a namesake is refused", async () => {
        const made = await must("POST", core("configmaps"), configMap("a"));
        await must("DELETE", core("configmaps", "a"));
        const { resourceVersion: _, ...metadata } = made.metadata;
        await must("POST", core("configmaps"), configMap("a"));
        const { message } = await refused(409, "PUT", core("configmaps", "a"), { ...made, metadata });
        expect(message).toContain("Precondition failed: UID in precondition");
        const patch = { headers: { "content-type": "application/merge-patch+json" } };
        const { details } = await refused(
          422,
          "PATCH",
          core("configmaps", "a"),
          { metadata: { uid: metadata.uid } },
          patch,
        );
        expect(details.causes[0]).toMatchObject({ field: "metadata.uid" });
      });
      it("to what does not exist is not found", async () => {
        await refused(404, "PUT", widgets("a"), widget("a", { size: 1 }, { resourceVersion: "1" }));
      });
      it("cannot touch UID, creation time or generation", async () => {
        const made = await must("POST", widgets(), widget("a"));
        const changed = await merge(widgets("a"), {
          metadata: { creationTimestamp: "2001-01-01T00:00:00Z", generation: 99, labels: { a: "b" } },
        });
        expect(changed.metadata).toMatchObject({
          uid: made.metadata.uid,
          creationTimestamp: made.metadata.creationTimestamp,
          generation: 1,
          labels: { a: "b" },
        });
      });
      it("of a label to null removes it", async () => {
        await must("POST", core("configmaps"), configMap("a", { labels: { x: "1", y: "2" } }));
        const changed = await merge(core("configmaps", "a"), { metadata: { labels: { x: null } } });
        expect(changed.metadata.labels).toEqual({ y: "2" });
      });
      it("by JSON patch adds, replaces, removes, moves, copies and tests", async () => {
        await must("POST", core("configmaps"), {
          ...configMap("a", { annotations: { "x.y/z": "3", kept: "4" } }),
          data: { a: "1", b: "2" },
        });
        const changed = await must(
          "PATCH",
          core("configmaps", "a"),
          ...json([
            { op: "test", path: "/data/a", value: "1" },
            { op: "replace", path: "/data/a", value: "10" },
            { op: "move", from: "/data/b", path: "/data/moved" },
            { op: "copy", from: "/data/a", path: "/data/copied" },
            { op: "remove", path: "/metadata/annotations/x.y~1z" },
            { op: "add", path: "/metadata/labels", value: { x: "y" } },
          ]),
        );
        expect(changed.data).toEqual({ a: "10", moved: "2", copied: "10" });
        expect(changed.metadata).toMatchObject({ labels: { x: "y" }, annotations: { kept: "4" } });
        expect(changed.metadata.annotations).not.toHaveProperty("x.y/z");
      });
      it("by JSON patch on lists inserts, appends and removes", async () => {
        await must("POST", widgets(), widget("a", { size: 1, few: ["b"] }));
        const changed = await must(
          "PATCH",
          widgets("a"),
          ...json([
            { op: "add", path: "/spec/few/0", value: "a" },
            { op: "add", path: "/spec/few/-", value: "c" },
            { op: "remove", path: "/spec/few/1" },
          ]),
        );
        expect(changed.spec).toMatchObject({ few: ["a", "c"] });
      });
      it("by JSON patch whose test fails changes nothing", async () => {
        await must("POST", core("configmaps"), configMap("a"));
        const { reason } = await refused(
          422,
          "PATCH",
          core("configmaps", "a"),
          ...json([
            { op: "replace", path: "/data/a", value: "2" },
            { op: "test", path: "/data/a", value: "3" },
          ]),
        );
        expect(reason).toBe("Invalid");
        expect((await must("GET", core("configmaps", "a"))).data).toEqual({ a: "1" });
      });
      it("by JSON patch to a place that is not there is refused", async () => {
        await must("POST", core("configmaps"), configMap("a"));
        await refused(422, "PATCH", core("configmaps", "a"), ...json([{ op: "remove", path: "/data/nothing" }]));
      });
      it("in a format that nobody knows is refused", async () => {
        await must("POST", core("configmaps"), configMap("a"));
        const { reason } = await refused(
          415,
          "PATCH",
          core("configmaps", "a"),
          {},
          { headers: { "content-type": "application/x-diff" } },
        );
        expect(reason).toBe("UnsupportedMediaType");
      });
      it("on trial is answered and not made", async () => {
        const made = await must("POST", core("configmaps"), configMap("a"), { query: { dryRun: "All" } });
        expect(made.metadata.name).toBe("a");
        await refused(404, "GET", core("configmaps", "a"));
        await must("POST", core("configmaps"), configMap("a"));
        const changed = await merge(core("configmaps", "a"), { data: { a: "2" } }, { dryRun: "All" });
        expect(changed.data).toEqual({ a: "2" });
        await must("DELETE", core("configmaps", "a"), undefined, { query: { dryRun: "All" } });
        expect((await must("GET", core("configmaps", "a"))).data).toEqual({ a: "1" });
      });
    });

    describe("generation and status", () => {
      it("count changes of the specification only", async () => {
        await must("POST", widgets(), widget("a"));
        expect((await merge(widgets("a"), { metadata: { labels: { x: "y" } } })).metadata.generation).toBe(1);
        expect((await merge(`${widgets("a")}/status`, { status: { phase: "Up" } })).metadata.generation).toBe(1);
        expect((await merge(widgets("a"), { spec: { size: 2 } })).metadata.generation).toBe(2);
      });
      it("keep a new object's status out", async () => {
        const made = await must("POST", widgets(), { ...widget("a"), status: { phase: "Up" } });
        expect(made.status).toBeUndefined();
      });
      it("keep the main verbs from writing status", async () => {
        await must("POST", widgets(), widget("a"));
        await merge(`${widgets("a")}/status`, { status: { phase: "Up" } });
        const changed = await merge(widgets("a"), { spec: { size: 2 }, status: { phase: "Down" } });
        expect(changed).toMatchObject({ spec: { size: 2 }, status: { phase: "Up" } });
      });
      it("keep /status from writing anything else", async () => {
        await must("POST", widgets(), widget("a"));
        const changed = await merge(`${widgets("a")}/status`, {
          metadata: { labels: { x: "y" }, finalizers: ["a.b/c"] },
          spec: { size: 2 },
          status: { phase: "Up" },
        });
        expect(changed).toMatchObject({ spec: { size: 1 }, status: { phase: "Up" } });
        expect(changed.metadata.labels).toBeUndefined();
        expect(changed.metadata.finalizers).toBeUndefined();
      });
      it("lock optimistically, too", async () => {
        const made = await must("POST", widgets(), widget("a"));
        await merge(widgets("a"), { spec: { size: 2 } });
        await refused(409, "PUT", `${widgets("a")}/status`, { ...made, status: { phase: "Up" } });
      });
      it("are there for Pods: /status leaves the specification alone", async () => {
        await must("POST", core("pods"), pod("a"));
        const changed = await merge(`${core("pods", "a")}/status`, {
          status: { phase: "Running" },
          spec: { terminationGracePeriodSeconds: 1 },
        });
        expect(changed).toMatchObject({ status: { phase: "Running" }, spec: { terminationGracePeriodSeconds: 30 } });
      });
    });

    describe("deletion", () => {
      it("of a plain object answers Success, and it is gone", async () => {
        const made = await must("POST", core("configmaps"), configMap("a"));
        const answer = (await must("DELETE", core("configmaps", "a"))) as unknown as Any;
        expect(answer).toMatchObject({ kind: "Status", status: "Success", details: { uid: made.metadata.uid } });
        await refused(404, "GET", core("configmaps", "a"));
      });
      it("of what is not there is not found", async () => {
        await refused(404, "DELETE", core("configmaps", "a"));
      });
      it("meant for another UID or version is a conflict", async () => {
        await must("POST", core("configmaps"), configMap("a"));
        for (const preconditions of [{ uid: "another" }, { resourceVersion: "1" }]) {
          const { reason } = await refused(409, "DELETE", core("configmaps", "a"), {
            kind: "DeleteOptions",
            apiVersion: "v1",
            preconditions,
          });
          expect(reason).toBe("Conflict");
        }
      });
      it("waits for finalizers, and is done when the last one goes", async () => {
        await must("POST", widgets(), widget("a", { size: 1 }, { finalizers: ["a.b/one", "a.b/two"] }));
        const marked = await must("DELETE", widgets("a"));
        expect(marked.metadata).toMatchObject({ deletionGracePeriodSeconds: 0, generation: 2 });
        expect(marked.metadata.deletionTimestamp).toBeDefined();
        await merge(widgets("a"), { metadata: { finalizers: ["a.b/two"] } });
        await must("GET", widgets("a"));
        await merge(widgets("a"), { metadata: { finalizers: null } });
        await refused(404, "GET", widgets("a"));
      });
      it("allows no new finalizers once it has begun", async () => {
        await must("POST", widgets(), widget("a", { size: 1 }, { finalizers: ["a.b/one"] }));
        await must("DELETE", widgets("a"));
        const { message } = await refused(
          422,
          "PATCH",
          widgets("a"),
          { metadata: { finalizers: ["a.b/one", "a.b/two"] } },
          { headers: { "content-type": "application/merge-patch+json" } },
        );
        expect(message).toContain("metadata.finalizers: Forbidden: no new finalizers can be added");
        await merge(widgets("a"), { metadata: { finalizers: [] } });
      });
      it("asked for again keeps its first time", async () => {
        await must("POST", widgets(), widget("a", { size: 1 }, { finalizers: ["a.b/one"] }));
        const first = await must("DELETE", widgets("a"));
        const second = await must("DELETE", widgets("a"));
        expect(second.metadata).toEqual(first.metadata);
        await merge(widgets("a"), { metadata: { finalizers: [] } });
      });
      it("of a Pod that has no node is done at once", async () => {
        await must("POST", core("pods"), pod("a"));
        expect((await must("DELETE", core("pods", "a"))).kind).toBe("Pod");
        await refused(404, "GET", core("pods", "a"));
      });
      it("of a Pod on a node waits for the node, which ends it with a grace of 0", async () => {
        await must("POST", core("pods"), pod("a", {}, { nodeName: "n", terminationGracePeriodSeconds: 7 }));
        const marked = await must("DELETE", core("pods", "a"));
        expect(marked.metadata.deletionGracePeriodSeconds).toBe(7);
        const created = Date.parse(marked.metadata.creationTimestamp!);
        expect(Date.parse(marked.metadata.deletionTimestamp!) - created).toBeGreaterThanOrEqual(7000);
        await must("GET", core("pods", "a"));
        await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 0 });
        await refused(404, "GET", core("pods", "a"));
      });
      it("of a Pod can be hurried, not put off", async () => {
        await must("POST", core("pods"), pod("a", {}, { nodeName: "n" }));
        await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 20 });
        const later = await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 60 });
        expect(later.metadata.deletionGracePeriodSeconds).toBe(20);
        const sooner = await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 5 });
        expect(sooner.metadata.deletionGracePeriodSeconds).toBe(5);
        await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 0 });
      });
      it("of a Pod that has ended is done at once", async () => {
        await must("POST", core("pods"), pod("a", {}, { nodeName: "n" }));
        await merge(`${core("pods", "a")}/status`, { status: { phase: "Succeeded" } });
        await must("DELETE", core("pods", "a"));
        await refused(404, "GET", core("pods", "a"));
      });
      it("of a collection takes what the selector means", async () => {
        await must("POST", core("configmaps"), configMap("a", { labels: { app: "x" } }));
        await must("POST", core("configmaps"), configMap("b", { labels: { app: "y" } }));
        await must("DELETE", core("configmaps"), undefined, { query: { labelSelector: "app=x" } });
        await refused(404, "GET", core("configmaps", "a"));
        await must("GET", core("configmaps", "b"));
      });
      it("knows three ways to treat dependents, and no others", async () => {
        await must("POST", core("configmaps"), configMap("a"));
        await refused(422, "DELETE", core("configmaps", "a"), { propagationPolicy: "Sideways" });
      });
    });

    describe("garbage collection", () => {
      withControllers("takes dependents after their owner in the background", async () => {
        const owner = await must("POST", widgets(), widget("owner"));
        await must("POST", core("configmaps"), configMap("child", ownedBy(owner)));
        await must("DELETE", widgets("owner"), { propagationPolicy: "Background" });
        await gone(core("configmaps"), "child");
      });
      withControllers("takes dependents before their owner in the foreground", async () => {
        const owner = await must("POST", widgets(), widget("owner"));
        const finalizers = ["a.b/hold"];
        await must(
          "POST",
          core("configmaps"),
          configMap("child", { ...ownedBy(owner, { blockOwnerDeletion: true }), finalizers }),
        );
        const marked = await must("DELETE", widgets("owner"), { propagationPolicy: "Foreground" });
        expect(marked.metadata.finalizers).toEqual(["foregroundDeletion"]);
        await until(core("configmaps"), "child", (child) => child?.metadata.deletionTimestamp !== undefined);
        await must("GET", widgets("owner"));
        await merge(core("configmaps", "child"), { metadata: { finalizers: [] } });
        await gone(widgets(), "owner");
      });
      withControllers("does not let an owner in the foreground wait for what does not block it", async () => {
        const owner = await must("POST", widgets(), widget("owner"));
        const finalizers = ["a.b/hold"];
        await must("POST", core("configmaps"), configMap("child", { ...ownedBy(owner), finalizers }));
        await must("DELETE", widgets("owner"), { propagationPolicy: "Foreground" });
        await gone(widgets(), "owner");
        await until(core("configmaps"), "child", (child) => child?.metadata.deletionTimestamp !== undefined);
        await merge(core("configmaps", "child"), { metadata: { finalizers: [] } });
      });
      withControllers(
        "lets an owner in the foreground go at once when it is deleted again in the background",
        async () => {
          const owner = await must("POST", widgets(), widget("owner"));
          const finalizers = ["a.b/hold"];
          const child = configMap("child", { ...ownedBy(owner, { blockOwnerDeletion: true }), finalizers });
          await must("POST", core("configmaps"), child);
          await must("DELETE", widgets("owner"), { propagationPolicy: "Foreground" });
          await until(core("configmaps"), "child", (one) => one?.metadata.deletionTimestamp !== undefined);
          await must("DELETE", widgets("owner"), { propagationPolicy: "Background" });
          await gone(widgets(), "owner");
          await must("GET", core("configmaps", "child"));
          await merge(core("configmaps", "child"), { metadata: { finalizers: [] } });
          await gone(core("configmaps"), "child");
        },
      );
      withControllers("goes down through generations in the foreground", async () => {
        const owner = await must("POST", widgets(), widget("owner"));
        const child = await must(
          "POST",
          widgets(),
          widget("child", { size: 1 }, ownedBy(owner, { blockOwnerDeletion: true })),
        );
        await must("POST", core("configmaps"), configMap("grandchild", ownedBy(child, { blockOwnerDeletion: true })));
        await must("DELETE", widgets("owner"), { propagationPolicy: "Foreground" });
        await gone(widgets(), "owner");
        await refused(404, "GET", widgets("child"));
        await refused(404, "GET", core("configmaps", "grandchild"));
      });
      withControllers("lets dependents go free when their owner is to leave them", async () => {
        const owner = await must("POST", widgets(), widget("owner"));
        await must("POST", core("configmaps"), configMap("child", ownedBy(owner)));
        await must("DELETE", widgets("owner"), { propagationPolicy: "Orphan" });
        await gone(widgets(), "owner");
        expect((await must("GET", core("configmaps", "child"))).metadata.ownerReferences).toBeUndefined();
      });
      withControllers("takes what names an owner that never was, or was another of that name", async () => {
        const owner = await must("POST", widgets(), widget("owner"));
        const stranger = { ...owner, metadata: { ...owner.metadata, uid: "11111111-2222-4333-8444-555555555555" } };
        await must("POST", core("configmaps"), configMap("child", ownedBy(stranger)));
        await gone(core("configmaps"), "child");
        await must("GET", widgets("owner"));
      });
      withControllers("leaves what another owner still needs", async () => {
        const one = await must("POST", widgets(), widget("one"));
        const two = await must("POST", widgets(), widget("two"));
        const ownerReferences = [one, two].flatMap((owner) => ownedBy(owner).ownerReferences);
        await must("POST", core("configmaps"), configMap("child", { ownerReferences }));
        await must("DELETE", widgets("one"), { propagationPolicy: "Background" });
        await until(core("configmaps"), "child", (child) => child?.metadata.ownerReferences?.length === 1);
      });
      withControllers("empties a namespace that is deleted, and lets nothing new in", async () => {
        await must("POST", widgets(), widget("a", { size: 1 }, { finalizers: ["a.b/hold"] }));
        await must("POST", core("configmaps"), configMap("b"));
        await must("DELETE", `/api/v1/namespaces/${ns}`);
        await until(widgets(), "a", (object) => object?.metadata.deletionTimestamp !== undefined);
        const { message } = await refused(403, "POST", core("configmaps"), configMap("late"));
        expect(message).toContain("because it is being terminated");
        await merge(widgets("a"), { metadata: { finalizers: [] } });
        await gone("/api/v1/namespaces", ns);
      });
    });

    describe("a list", () => {
      const three = async () => {
        await must("POST", core("configmaps"), configMap("a", { labels: { app: "x", tier: "front" } }));
        await must("POST", core("configmaps"), configMap("b", { labels: { app: "y" } }));
        await must("POST", core("configmaps"), configMap("c", { labels: { "ray.io/cluster": "x", app: "x" } }));
      };
      it.each([
        ["app=x", ["a", "c"]],
        ["app==y", ["b"]],
        ["app!=x", ["b"]],
        ["tier", ["a"]],
        ["!tier", ["b", "c"]],
        ["app in (x,y)", ["a", "b", "c"]],
        ["app in (y), !tier", ["b"]],
        ["app notin (x)", ["b"]],
        ["app=x,tier!=front", ["c"]],
        ["ray.io/cluster=x", ["c"]],
      ])("by label %s finds %j", async (labelSelector, wanted) => {
        await three();
        // Other things of the cluster's may be in the namespace, too.
        const list = await must("GET", core("configmaps"), undefined, { query: { labelSelector } });
        expect(names(list).filter((one) => one!.length === 1)).toEqual(wanted);
      });
      it("by a selector that is none is refused", async () => {
        await refused(400, "GET", core("configmaps"), undefined, { query: { labelSelector: "a b c" } });
        await refused(400, "GET", core("configmaps"), undefined, { query: { fieldSelector: "data.a=1" } });
      });
      it("by field finds Pods by name, node and phase", async () => {
        await must("POST", core("pods"), pod("a", {}, { nodeName: "n" }));
        await must("POST", core("pods"), pod("b"));
        await merge(`${core("pods", "b")}/status`, { status: { phase: "Failed" } });
        for (const [fieldSelector, wanted] of [
          ["metadata.name=a", ["a"]],
          ["metadata.name!=a", ["b"]],
          ["spec.nodeName=n", ["a"]],
          ["spec.nodeName=", ["b"]],
          ["status.phase=Failed,metadata.name=b", ["b"]],
        ] as const) {
          expect(names(await must("GET", core("pods"), undefined, { query: { fieldSelector } }))).toEqual(wanted);
        }
        await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 0 });
      });
      it("in pieces shows the world as it was at the first piece", async () => {
        await must("POST", widgets(), widget("a"));
        await must("POST", widgets(), widget("b"));
        await must("POST", widgets(), widget("d"));
        const first = await must("GET", widgets(), undefined, { query: { limit: "1" } });
        expect(names(first)).toEqual(["a"]);
        expect((first.metadata as { remainingItemCount?: number }).remainingItemCount).toBe(2);
        await must("POST", widgets(), widget("c"));
        await must("DELETE", widgets("d"));
        const token = (first.metadata as { continue?: string }).continue!;
        const rest = await must("GET", widgets(), undefined, { query: { limit: "5", continue: token } });
        expect(names(rest)).toEqual(["b", "d"]);
        expect(rest.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
        expect((rest.metadata as { continue?: string }).continue ?? "").toBe("");
      });
      it("goes over all namespaces when none is named", async () => {
        await must("POST", widgets(), widget("everywhere"));
        const list = await must("GET", `/apis/${GROUP}/v1/widgets`, undefined, {
          query: { fieldSelector: "metadata.name=everywhere" },
        });
        expect(list.items).toHaveLength(1);
      });
      it("names the kind of custom objects, and not of built-in ones", async () => {
        await must("POST", widgets(), widget("a"));
        await must("POST", core("secrets"), { metadata: { name: "a" } });
        const custom = await must("GET", widgets());
        expect(custom).toMatchObject({ kind: "WidgetList", items: [{ kind: "Widget", apiVersion: `${GROUP}/v1` }] });
        const builtIn = await must("GET", core("secrets"));
        expect(builtIn.kind).toBe("SecretList");
        expect((builtIn.items as Any[])[0]!.kind).toBeUndefined();
      });
      it("of metadata only leaves out the rest", async () => {
        await must("POST", widgets(), widget("a", { size: 1 }, { labels: { x: "y" } }));
        const accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        const list = await must("GET", widgets(), undefined, { headers: { accept } });
        expect(list.kind).toBe("PartialObjectMetadataList");
        const [item] = list.items as Any[];
        expect(item!.metadata).toMatchObject({ name: "a", labels: { x: "y" } });
        expect(item!.spec).toBeUndefined();
      });
      it("as a table has the columns that kubectl shows", async () => {
        await must("POST", widgets(), widget("a", { size: 7 }));
        const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
        const list = await must("GET", widgets(), undefined, { headers: { accept } });
        expect(list.kind).toBe("Table");
        expect((list.columnDefinitions as { name: string }[]).map(({ name }) => name)).toEqual(["Name", "Size", "Age"]);
        const [row] = list.rows as { cells: unknown[]; object: Any }[];
        expect(row!.cells.slice(0, 2)).toEqual(["a", 7]);
        expect(row!.object.metadata.name).toBe("a");
      });
    });

    describe("a watch", () => {
      it("tells what has happened since a version, in order", async () => {
        const { metadata } = await must("GET", widgets());
        await must("POST", widgets(), widget("a"));
        await merge(widgets("a"), { spec: { size: 2 } });
        await must("POST", widgets(), widget("b"));
        await must("DELETE", widgets("a"));
        const events = watch(widgets(), { resourceVersion: metadata.resourceVersion! });
        expect(await take(events, 4)).toEqual(["ADDED a", "MODIFIED a", "ADDED b", "DELETED a"]);
      });
      it("tells what happens while it is open", async () => {
        const { metadata } = await must("GET", widgets());
        const events = watch(widgets(), { resourceVersion: metadata.resourceVersion! });
        const taken = take(events, 2);
        await must("POST", widgets(), widget("a"));
        await must("DELETE", widgets("a"));
        expect(await taken).toEqual(["ADDED a", "DELETED a"]);
      });
      it("without a version begins with what there is", async () => {
        await must("POST", widgets(), widget("a"));
        await must("POST", widgets(), widget("b"));
        expect((await take(watch(widgets()), 2)).sort()).toEqual(["ADDED a", "ADDED b"]);
      });
      it("by selector sees objects come and go as they begin and cease to match", async () => {
        const { metadata } = await must("GET", widgets());
        const { resourceVersion } = metadata;
        await must("POST", widgets(), widget("a", { size: 1 }, { labels: { app: "other" } }));
        await merge(widgets("a"), { metadata: { labels: { app: "mine" } } });
        await merge(widgets("a"), { spec: { size: 2 } });
        await merge(widgets("a"), { metadata: { labels: { app: "other" } } });
        await must("DELETE", widgets("a"));
        await must("POST", widgets(), widget("b", { size: 1 }, { labels: { app: "mine" } }));
        const events = watch(widgets(), { resourceVersion: resourceVersion!, labelSelector: "app=mine" });
        expect(await take(events, 4)).toEqual(["ADDED a", "MODIFIED a", "DELETED a", "ADDED b"]);
      });
      it("tells a deletion under a version of its own", async () => {
        const made = await must("POST", widgets(), widget("a"));
        await must("DELETE", widgets("a"));
        const events = watch(widgets(), { resourceVersion: made.metadata.resourceVersion! });
        const { value } = await events.next();
        await events.return(undefined);
        expect(value!.type).toBe("DELETED");
        expect(Number(value!.object.metadata.resourceVersion)).toBeGreaterThan(Number(made.metadata.resourceVersion));
        expect(value!.object.spec).toMatchObject({ size: 1 });
      });
      it("of metadata only leaves out the rest", async () => {
        const { metadata } = await must("POST", widgets(), widget("a"));
        await merge(widgets("a"), { metadata: { labels: { x: "y" } } });
        const { lines } = await target.transport.stream({
          method: "GET",
          path: widgets(),
          query: { watch: "true", resourceVersion: metadata.resourceVersion! },
          headers: { accept: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1" },
        });
        for await (const line of lines) {
          const { object } = JSON.parse(line) as { object: Any };
          expect(object.kind).toBe("PartialObjectMetadata");
          expect(object.spec).toBeUndefined();
          break;
        }
      });
      it("with initial events says where they end", async () => {
        await must("POST", widgets(), widget("a"));
        const events = watch(widgets(), {
          sendInitialEvents: "true",
          resourceVersionMatch: "NotOlderThan",
          allowWatchBookmarks: "true",
        });
        const first = (await events.next()).value!;
        const second = (await events.next()).value!;
        await events.return(undefined);
        expect(first.type).toBe("ADDED");
        expect(second.type).toBe("BOOKMARK");
        expect(second.object.metadata.annotations).toMatchObject({ "k8s.io/initial-events-end": "true" });
      });
      it("ends by itself when a time-out was asked for", async () => {
        const { metadata } = await must("GET", widgets());
        const rest: string[] = [];
        const events = watch(widgets(), { resourceVersion: metadata.resourceVersion!, timeoutSeconds: "1" });
        for await (const { type } of events) rest.push(type);
        expect(rest.filter((type) => type !== "BOOKMARK")).toEqual([]);
      });
    });

    describe("a custom kind", () => {
      it("gets its defaults, also within lists and what is itself a default", async () => {
        const made = await must("POST", widgets(), widget("a", { size: 1, parts: [{ name: "p" }] }));
        expect(made.spec).toEqual({
          size: 1,
          colour: "red",
          nested: { deep: true },
          parts: [{ name: "p", count: 1 }],
        });
      });
      it("takes a null that may not be for nothing", async () => {
        const made = await must("POST", widgets(), widget("a", { size: 1, colour: null, maybe: null, code: null }));
        expect(made.spec).toMatchObject({ colour: "red", maybe: null });
        expect(made.spec).not.toHaveProperty("code");
      });
      it("loses fields that its schema does not name, with a warning", async () => {
        const { body, headers } = await ask("POST", widgets(), widget("a", { size: 1, unheard: { of: 1 } }));
        expect((body as Any).spec).not.toHaveProperty("unheard");
        expect(headers.warning).toContain('unknown field \\"spec.unheard\\"');
      });
      it("is refused with unknown fields by those who ask to be strict", async () => {
        const { reason, message } = await refused(400, "POST", widgets(), widget("a", { size: 1, unheard: 1 }), {
          query: { fieldValidation: "Strict" },
        });
        expect(reason).toBe("BadRequest");
        expect(message).toContain('strict decoding error: unknown field "spec.unheard"');
      });
      it("keeps unknown fields where its schema says so, and the metadata of an embedded object", async () => {
        const free = { any: { thing: [1, 2] } };
        const template = {
          apiVersion: "v1",
          kind: "Thing",
          metadata: { name: "n", labels: { a: "b" } },
          spec: { known: "yes", other: 1 },
        };
        const made = await must("POST", widgets(), widget("a", { size: 1, free, template }));
        expect(made.spec).toMatchObject({ free, template: { ...template, spec: { known: "yes" } } });
      });
      it.each([
        [
          "a value of the wrong type",
          { size: "1" },
          "spec.size",
          'Invalid value: "string": spec.size in body must be of type integer: "string"',
        ],
        [
          "a fraction for a whole number",
          { size: 1.5 },
          "spec.size",
          'Invalid value: "number": spec.size in body must be of type integer: "number"',
        ],
        ["nothing where something must be", {}, "spec.size", "Required value"],
        [
          "too little",
          { size: -1 },
          "spec.size",
          "Invalid value: -1: spec.size in body should be greater than or equal to 0",
        ],
        [
          "too much",
          { size: 101 },
          "spec.size",
          "Invalid value: 101: spec.size in body should be less than or equal to 100",
        ],
        [
          "a word not among those allowed",
          { size: 1, colour: "blue" },
          "spec.colour",
          'Unsupported value: "blue": supported values: "red", "green"',
        ],
        ["too long a text", { size: 1, code: "abcde" }, "spec.code", "Too long: may not be more than 4 bytes"],
        [
          "a text of another form",
          { size: 1, code: "A" },
          "spec.code",
          `Invalid value: "A": spec.code in body should match '^[a-z]*$'`,
        ],
        [
          "a time that is none",
          { size: 1, at: "noon" },
          "spec.at",
          'Invalid value: "noon": spec.at in body must be of type date-time: "noon"',
        ],
        [
          "neither number nor text",
          { size: 1, port: true },
          "spec.port",
          'Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
        ],
        ["the same twice in a set", { size: 1, tags: ["a", "a"] }, "spec.tags[1]", 'Duplicate value: "a"'],
        [
          "the same key twice",
          { size: 1, parts: [{ name: "a" }, { name: "a" }] },
          "spec.parts[1]",
          'Duplicate value: {"name":"a"}',
        ],
        ["too many", { size: 1, tags: ["a", "b", "c", "d"] }, "spec.tags", "Too many: 4: must have at most 3 items"],
        [
          "too few",
          { size: 1, few: [] },
          "spec.few",
          "Invalid value: 0: spec.few in body should have at least 1 items",
        ],
        [
          "a wrong value in a map",
          { size: 1, options: { a: 1 } },
          "spec.options.a",
          'Invalid value: "integer": spec.options.a in body must be of type string: "integer"',
        ],
        [
          "what a rule between fields forbids",
          { size: 5, limit: 4 },
          "spec",
          "Invalid value: size must not exceed limit",
        ],
      ])("refuses %s", async (_, spec, field, words) => {
        const { reason, message, details } = await refused(422, "POST", widgets(), widget("a", spec));
        expect(reason).toBe("Invalid");
        expect(message).toContain(`Widget.${GROUP} "a" is invalid: `);
        expect(details.causes.find((cause) => cause.field === field)?.message).toBe(words);
      });
      it("takes both numbers and texts where it says so", async () => {
        await must("POST", widgets(), widget("a", { size: 1, port: 80 }));
        await must("POST", widgets(), widget("b", { size: 1, port: "http" }));
      });
      it("is held to the rules between its fields", async () => {
        await refused(422, "POST", widgets(), widget("a", { size: 5, limit: 4 }));
        await must("POST", widgets(), widget("a", { size: 4, limit: 4 }));
      });
      it("is held to rules about changes when it changes, not when it is made", async () => {
        await must("POST", widgets(), widget("a", { size: 1, fixed: "x" }));
        const patch = { headers: { "content-type": "application/merge-patch+json" } };
        const { message } = await refused(422, "PATCH", widgets("a"), { spec: { fixed: "y" } }, patch);
        expect(message).toContain("fixed is immutable");
        await merge(widgets("a"), { spec: { size: 2 } });
      });
      it("is one and the same in all its versions", async () => {
        await must("POST", widgets(), widget("a", { size: 3 }));
        const other = await must("GET", widgets("a", "v1beta1"));
        expect(other).toMatchObject({ apiVersion: `${GROUP}/v1beta1`, spec: { size: 3 } });
        await put(widgets("a", "v1beta1"), { ...other, spec: { size: 4 } });
        expect(await must("GET", widgets("a"))).toMatchObject({ apiVersion: `${GROUP}/v1`, spec: { size: 4 } });
      });
      it("must be written in the version that the path names", async () => {
        await refused(400, "POST", widgets(undefined, "v1beta1"), widget("a"));
      });
      it("is told by discovery with its short names and subresources", async () => {
        const list = (await must("GET", `/apis/${GROUP}/v1`)) as unknown as {
          resources: { name: string; shortNames?: string[] }[];
        };
        expect(list.resources.map(({ name }) => name).sort()).toEqual(["widgets", "widgets/status"]);
        expect(list.resources.find(({ name }) => name === "widgets")!.shortNames).toEqual(["wd"]);
      });
    });

    describe("a Pod", () => {
      it("gets what its specification leaves out", async () => {
        const made = await must(
          "POST",
          core("pods"),
          pod(
            "a",
            {},
            {
              containers: [
                {
                  name: "main",
                  image: "busybox:1.36",
                  ports: [{ containerPort: 80 }],
                  readinessProbe: { httpGet: { port: 80 } },
                  resources: { limits: { cpu: "1" } },
                  env: [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }],
                },
                { name: "latest", image: "busybox" },
              ],
              volumes: [{ name: "v", configMap: { name: "c" } }, { name: "e" }],
            },
          ),
        );
        expect(made.status).toMatchObject({ phase: "Pending" });
        expect(made.spec).toMatchObject({
          restartPolicy: "Always",
          terminationGracePeriodSeconds: 30,
          dnsPolicy: "ClusterFirst",
          containers: [
            {
              imagePullPolicy: "IfNotPresent",
              terminationMessagePath: "/dev/termination-log",
              ports: [{ containerPort: 80, protocol: "TCP" }],
              readinessProbe: {
                httpGet: { path: "/", port: 80, scheme: "HTTP" },
                periodSeconds: 10,
                timeoutSeconds: 1,
                successThreshold: 1,
                failureThreshold: 3,
              },
              resources: { limits: { cpu: "1" }, requests: { cpu: "1" } },
              env: [{ name: "IP", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "status.podIP" } } }],
            },
            { imagePullPolicy: "Always" },
          ],
        });
        const volumes = (made.spec as { volumes: object[] }).volumes;
        expect(volumes[0]).toEqual({ name: "v", configMap: { name: "c", defaultMode: 420 } });
        expect(volumes[1]).toEqual({ name: "e", emptyDir: {} });
      });
      it.each([
        ["no containers", { containers: [] }, "spec.containers"],
        ["a container without an image", { containers: [{ name: "a" }] }, "spec.containers[0].image"],
        ["a container without a name", { containers: [{ name: "", image: "a" }] }, "spec.containers[0].name"],
        [
          "two containers of one name",
          {
            containers: [
              { name: "a", image: "a" },
              { name: "a", image: "a" },
            ],
          },
          "spec.containers[1].name",
        ],
        ["a restart policy that is none", { restartPolicy: "Sometimes" }, "spec.restartPolicy"],
        [
          "a mount of no volume",
          { containers: [{ name: "a", image: "a", volumeMounts: [{ name: "v", mountPath: "/v" }] }] },
          "spec.containers[0].volumeMounts[0].name",
        ],
        [
          "a port that is none",
          { containers: [{ name: "a", image: "a", ports: [{ containerPort: 70000 }] }] },
          "spec.containers[0].ports[0].containerPort",
        ],
      ])("with %s is refused", async (_, spec, field) => {
        const { message, details } = await refused(422, "POST", core("pods"), pod("a", {}, spec));
        expect(message).toContain('Pod "a" is invalid: ');
        expect(details.causes.map((cause) => cause.field)).toContain(field);
      });
      it("keeps its specification, but for a few fields", async () => {
        await must("POST", core("pods"), pod("a"));
        const { message } = await refused(
          422,
          "PATCH",
          core("pods", "a"),
          ...json([{ op: "add", path: "/spec/containers/0/command", value: ["true"] }]),
        );
        expect(message).toContain("pod updates may not change fields other than");
        await must(
          "PATCH",
          core("pods", "a"),
          ...json([{ op: "replace", path: "/spec/containers/0/image", value: "b" }]),
        );
      });
      it("is bound to one node, once", async () => {
        await must("POST", core("pods"), pod("a"));
        const binding = {
          apiVersion: "v1",
          kind: "Binding",
          metadata: { name: "a" },
          target: { kind: "Node", name: "n" },
        };
        expect((await ask("POST", `${core("pods", "a")}/binding`, binding)).status).toBe(201);
        const bound = await must("GET", core("pods", "a"));
        expect(bound.spec).toMatchObject({ nodeName: "n" });
        expect(bound.status).toMatchObject({ conditions: [{ type: "PodScheduled", status: "True" }] });
        await refused(409, "POST", `${core("pods", "a")}/binding`, binding);
        await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 0 });
      });
    });

    describe("other built-in kinds", () => {
      it("a Service gets an address, and keeps it", async () => {
        const made = await must("POST", core("services"), {
          metadata: { name: "a" },
          spec: { selector: { app: "x" }, ports: [{ port: 80 }] },
        });
        expect(made.spec).toMatchObject({
          type: "ClusterIP",
          sessionAffinity: "None",
          ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
        });
        const { clusterIP } = made.spec as { clusterIP: string };
        expect(clusterIP).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
        const changed = await merge(core("services", "a"), { spec: { selector: { app: "y" } } });
        expect(changed.spec).toMatchObject({ clusterIP });
      });
      it("a headless Service has none", async () => {
        const made = await must("POST", core("services"), { metadata: { name: "a" }, spec: { clusterIP: "None" } });
        expect(made.spec).toMatchObject({ clusterIP: "None" });
      });
      it("a Service with a bad name or without ports is refused", async () => {
        await refused(422, "POST", core("services"), { metadata: { name: "1a" }, spec: { ports: [{ port: 1 }] } });
        await refused(422, "POST", core("services"), { metadata: { name: "a" }, spec: {} });
      });
      it("a Secret takes plain text and keeps it encoded", async () => {
        const made = await must("POST", core("secrets"), { metadata: { name: "a" }, stringData: { key: "välue" } });
        expect(made).toMatchObject({ type: "Opaque", data: { key: Buffer.from("välue").toString("base64") } });
        expect(made.stringData).toBeUndefined();
      });
      it("a ConfigMap takes text and nothing else", async () => {
        const { status } = await ask("POST", core("configmaps"), { metadata: { name: "a" }, data: { a: 1 } });
        expect(status).toBeGreaterThanOrEqual(400);
      });
      it("an Event is one thing in two spellings", async () => {
        const path = `/apis/events.k8s.io/v1/namespaces/${ns}/events`;
        await must("POST", path, {
          metadata: { name: "e" },
          eventTime: "2026-01-01T00:00:00.000000Z",
          reportingController: "raykeeper",
          reportingInstance: "one",
          action: "Start",
          reason: "Started",
          type: "Normal",
          note: "It began.",
          regarding: { apiVersion: `${GROUP}/v1`, kind: "Widget", name: "a", namespace: ns },
        });
        const old = await must("GET", core("events"), undefined, {
          query: { fieldSelector: "involvedObject.name=a,involvedObject.kind=Widget,reason=Started,type=Normal" },
        });
        expect((old.items as Any[])[0]).toMatchObject({
          message: "It began.",
          involvedObject: { kind: "Widget", name: "a" },
          reportingComponent: "raykeeper",
        });
        const now = await must("GET", path, undefined, {
          query: { fieldSelector: "regarding.kind=Widget,regarding.name=a" },
        });
        expect((now.items as Any[])[0]).toMatchObject({ note: "It began.", regarding: { name: "a" } });
      });
      describe("an Event of events.k8s.io", () => {
        const path = (name = "") => `/apis/events.k8s.io/v1/namespaces/${ns}/events${name}`;
        const event = (more: object = {}) => ({
          metadata: { name: "e" },
          eventTime: "2026-01-01T00:00:00.000000Z",
          reportingController: "raykeeper",
          reportingInstance: "one",
          action: "Start",
          reason: "Started",
          type: "Normal",
          note: "It began.",
          regarding: { apiVersion: `${GROUP}/v1`, kind: "Widget", name: "a", namespace: ns },
          ...more,
        });
        const series = { count: 2, lastObservedTime: "2026-01-01T00:01:00.000000Z" };
        it("has a time with six digits after the second", async () => {
          const { status } = await ask("POST", path(), event({ eventTime: "2026-01-01T00:00:00.000Z" }));
          expect(status).toBeGreaterThanOrEqual(400);
        });
        it.each([
          ["nothing to say who reports it", { reportingController: undefined }],
          ["no action", { action: undefined }],
          ["no time", { eventTime: undefined }],
          ["a type that is none", { type: "Fatal" }],
          ["too long a note", { note: "x".repeat(1025) }],
          ["the fields of the old kind", { deprecatedCount: 1 }],
          ["another namespace", { regarding: { kind: "Widget", name: "a" } }],
          ["a series of one", { series: { ...series, count: 1 } }],
        ])("with %s is refused", async (_, more) => {
          await refused(422, "POST", path(), event(more));
        });
        it("changes its series and nothing else", async () => {
          await must("POST", path(), event());
          const changed = await merge(path("/e"), { series });
          expect(changed.series).toEqual(series);
          const patch = { headers: { "content-type": "application/merge-patch+json" } };
          const { message } = await refused(422, "PATCH", path("/e"), { note: "It did not." }, patch);
          expect(message).toContain("field is immutable");
        });
      });
      it("a Lease changes hands by version", async () => {
        const path = `/apis/coordination.k8s.io/v1/namespaces/${ns}/leases`;
        const spec = { holderIdentity: "one", leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.000000Z" };
        const made = await must("POST", path, { metadata: { name: "a" }, spec });
        await put(`${path}/a`, { ...made, spec: { ...spec, holderIdentity: "two" } });
        await refused(409, "PUT", `${path}/a`, { ...made, spec: { ...spec, holderIdentity: "three" } });
      });
      it("a Job gets what its specification leaves out, and labels for its Pods", async () => {
        const made = await must("POST", jobs(), job("a"));
        const { uid } = made.metadata;
        expect(made.spec).toMatchObject({
          backoffLimit: 6,
          completions: 1,
          parallelism: 1,
          completionMode: "NonIndexed",
          suspend: false,
          selector: { matchLabels: { "batch.kubernetes.io/controller-uid": uid } },
          template: {
            metadata: {
              labels: {
                "batch.kubernetes.io/job-name": "a",
                "batch.kubernetes.io/controller-uid": uid,
                "job-name": "a",
              },
            },
            spec: { terminationGracePeriodSeconds: 30 },
          },
        });
      });
      it("a Job that would run for ever, or changes its template, is refused", async () => {
        const forever = { template: { spec: { containers: [{ name: "a", image: "a" }] } } };
        await refused(422, "POST", jobs(), job("a", forever));
        await must("POST", jobs(), job("a"));
        const { message } = await refused(
          422,
          "PATCH",
          jobs("a"),
          ...json([{ op: "replace", path: "/spec/template/spec/containers/0/image", value: "b" }]),
        );
        expect(message).toContain("field is immutable");
      });
      it("a namespace is Active", async () => {
        expect((await must("GET", `/api/v1/namespaces/${ns}`)).status).toEqual({ phase: "Active" });
      });
    });

    describe("controllers", () => {
      const podOf = async (name: string) => {
        const query = { labelSelector: `batch.kubernetes.io/job-name=${name}` };
        for await (const { type, object } of watch(core("pods"), query)) if (type === "ADDED") return object;
        throw new Error(`Job ${name} never made a Pod`);
      };
      const condition = (object: Any | undefined, type: string) =>
        (object?.status as { conditions?: { type: string; status: string; reason: string }[] })?.conditions?.find(
          (one) => one.type === type && one.status === "True",
        );
      withControllers("run a Job's Pod and count its success", async () => {
        const made = await must("POST", jobs(), job("a"));
        const worker = await podOf("a");
        expect(worker.metadata.name).toMatch(/^a-[a-z0-9]{5}$/);
        expect(worker.metadata.ownerReferences).toEqual([
          {
            apiVersion: "batch/v1",
            kind: "Job",
            name: "a",
            uid: made.metadata.uid,
            controller: true,
            blockOwnerDeletion: true,
          },
        ]);
        await until(jobs(), "a", (object) => (object?.status as { active?: number })?.active === 1);
        await merge(`${core("pods", worker.metadata.name)}/status`, { status: { phase: "Succeeded" } });
        const done = await until(jobs(), "a", (object) => condition(object, "Complete") !== undefined);
        expect(done!.status).toMatchObject({ succeeded: 1 });
        expect((done!.status as { completionTime?: string }).completionTime).toBeDefined();
        expect(condition(done, "SuccessCriteriaMet")).toBeDefined();
      });
      withControllers("give a Job up at its limit", async () => {
        await must("POST", jobs(), job("a", { backoffLimit: 0 }));
        const worker = await podOf("a");
        await merge(`${core("pods", worker.metadata.name)}/status`, { status: { phase: "Failed" } });
        const done = await until(jobs(), "a", (object) => condition(object, "Failed") !== undefined);
        expect(condition(done, "Failed")!.reason).toBe("BackoffLimitExceeded");
        expect(done!.status).toMatchObject({ failed: 1 });
      });
      withControllers("make no Pod for a suspended Job until it is resumed", async () => {
        await must("POST", jobs(), job("a", { suspend: true }));
        await until(jobs(), "a", (object) => condition(object, "Suspended") !== undefined);
        expect(names(await must("GET", core("pods")))).toEqual([]);
        await merge(jobs("a"), { spec: { suspend: false } });
        await podOf("a");
      });
      withControllers("find the Pods behind a Service", async () => {
        await must("POST", core("services"), {
          metadata: { name: "s" },
          spec: { selector: { app: "x" }, ports: [{ name: "web", port: 80, targetPort: "http" }] },
        });
        // The real controller wants to see the node that the Pod is on.
        const node = `${ns}-node`;
        await must("POST", "/api/v1/nodes", { metadata: { name: node } });
        const ports = [{ name: "http", containerPort: 8080 }];
        await must(
          "POST",
          core("pods"),
          pod("a", { labels: { app: "x" } }, { nodeName: node, containers: [{ name: "c", image: "i", ports }] }),
        );
        await merge(`${core("pods", "a")}/status`, {
          status: {
            phase: "Running",
            podIP: "10.1.2.3",
            podIPs: [{ ip: "10.1.2.3" }],
            conditions: [{ type: "Ready", status: "True" }],
          },
        });
        const path = `/apis/discovery.k8s.io/v1/namespaces/${ns}/endpointslices`;
        const query = { labelSelector: "kubernetes.io/service-name=s" };
        for await (const { object } of watch(path, query)) {
          const endpoints = (object.endpoints ?? []) as { addresses: string[]; conditions: { ready?: boolean } }[];
          if (!endpoints[0]?.conditions.ready) continue;
          expect(endpoints[0].addresses).toEqual(["10.1.2.3"]);
          expect(object.ports).toMatchObject([{ name: "web", port: 8080, protocol: "TCP" }]);
          break;
        }
        await must("DELETE", `/api/v1/nodes/${node}`);
        await must("DELETE", core("pods", "a"), { gracePeriodSeconds: 0 });
      });
    });

    describe("the rest", () => {
      it("tells its version and its health", async () => {
        expect(await must("GET", "/version")).toMatchObject({ major: "1" });
        expect(await ask("GET", "/readyz").then(({ body }) => body)).toBe("ok");
      });
      it("allows what it is asked about", async () => {
        const review = await must("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes: { verb: "get", resource: "pods", namespace: ns } },
        });
        expect(review.status).toMatchObject({ allowed: true });
      });
    });
  });
}
