import { describe, expect, it } from "vitest";
import type { Container, Pod } from "../../api/kubernetes.ts";
import type { ConfigSource } from "./configError.ts";
import { commandLine, containerEnvironment } from "./environment.ts";
import type { PodFacts } from "./fields.ts";

const facts: PodFacts = {
  podIP: "10.244.0.7",
  hostIP: "10.244.0.1",
  nodeName: "local",
  allocatable: { cpu: "4", memory: "8Gi" },
};
const source: ConfigSource = {
  configMap: async (name) =>
    name === "settings" ? { colour: Buffer.from("blue"), "a.b": Buffer.from("$(X)") } : undefined,
  secret: async (name) => (name === "login" ? { password: Buffer.from("p$$w") } : undefined),
};
const pod = {
  metadata: { name: "p", namespace: "team", uid: "u", labels: { "ray.io/cluster": "c" }, annotations: { note: "n" } },
  spec: { containers: [] },
} as unknown as Pod;

const resolve = (container: Partial<Container>) =>
  containerEnvironment({ name: "c", ...container }, pod, facts, source, { PATH: "/bin", HOME: "/home/ray" });

describe("a container's variables", () => {
  it("are the image's, overridden by the Pod's, and nothing of the machine's", async () => {
    const environment = await resolve({ env: [{ name: "HOME", value: "/else" }] });
    expect(environment).toEqual({ PATH: "/bin", HOME: "/else", HOSTNAME: "p" });
  });

  it("refer to entries before them, not after, and not to envFrom", async () => {
    const environment = await resolve({
      envFrom: [{ configMapRef: { name: "settings" } }],
      env: [
        { name: "LATE", value: "$(EARLY) $(colour)" },
        { name: "EARLY", value: "e" },
        { name: "BOTH", value: "$(EARLY)-$$(EARLY)" },
      ],
    });
    expect(environment).toMatchObject({ LATE: "$(EARLY) $(colour)", BOTH: "e-$(EARLY)", colour: "blue" });
  });

  it("take Secrets byte for byte, without expansion", async () => {
    const secretKeyRef = { name: "login", key: "password" };
    const environment = await resolve({ env: [{ name: "PW", valueFrom: { secretKeyRef } }] });
    expect(environment["PW"]).toBe("p$$w");
  });

  it("take what envFrom names, under its prefix", async () => {
    const environment = await resolve({ envFrom: [{ prefix: "S_", configMapRef: { name: "settings" } }] });
    expect(environment).toMatchObject({ S_colour: "blue", "S_a.b": "$(X)" });
  });

  it("learn about the Pod through the Downward API", async () => {
    const field = (fieldPath: string) => ({ fieldRef: { fieldPath } });
    const environment = await resolve({
      resources: { limits: { memory: "1Gi" }, requests: { cpu: "500m" } },
      env: [
        { name: "NAME", valueFrom: field("metadata.name") },
        { name: "IP", valueFrom: field("status.podIP") },
        { name: "CLUSTER", valueFrom: field("metadata.labels['ray.io/cluster']") },
        { name: "NONE", valueFrom: field("metadata.annotations['other']") },
        { name: "MEMORY", valueFrom: { resourceFieldRef: { resource: "limits.memory", divisor: "1Mi" } } },
        { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu", divisor: "0" } } },
        { name: "REQUEST", valueFrom: { resourceFieldRef: { resource: "requests.cpu" } } },
        { name: "MILLI", valueFrom: { resourceFieldRef: { resource: "requests.cpu", divisor: "1m" } } },
      ],
    });
    expect(environment).toMatchObject({
      NAME: "p",
      IP: "10.244.0.7",
      CLUSTER: "c",
      NONE: "",
      MEMORY: "1024",
      CPU: "4",
      REQUEST: "1",
      MILLI: "500",
    });
  });

  it("wait for a Secret that is missing, unless it is optional", async () => {
    const secretKeyRef = { name: "absent", key: "k" };
    await expect(resolve({ env: [{ name: "X", valueFrom: { secretKeyRef } }] })).rejects.toThrow(
      'secret "absent" not found',
    );
    const environment = await resolve({
      env: [{ name: "X", valueFrom: { secretKeyRef: { ...secretKeyRef, optional: true } } }],
    });
    expect(environment).not.toHaveProperty("X");
  });

  it("name the key that a ConfigMap lacks", async () => {
    const configMapKeyRef = { name: "settings", key: "size" };
    await expect(resolve({ env: [{ name: "X", valueFrom: { configMapKeyRef } }] })).rejects.toThrow(
      "couldn't find key size in ConfigMap team/settings",
    );
  });
});

describe("a container's command", () => {
  it("has references to any of its variables put in, in command and arguments", () => {
    const container = { name: "c", command: ["run", "$(A)"], args: ["$(B)", "$$(A)"] };
    expect(commandLine(container, { A: "1" })).toEqual(["run", "1", "$(B)", "$(A)"]);
  });

  it("is the image's shell when there is none", () => {
    expect(commandLine({ name: "c" }, {})).toEqual(["/bin/bash"]);
  });
});
