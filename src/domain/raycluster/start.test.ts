import { describe, expect, it } from "vitest";
import { defaultSettings } from "../settings.ts";
import { headStartParams, startCommand, startText, workerStartParams } from "./start.ts";
import { headGroup, rayCluster, workerGroup } from "./testing.ts";

const containers = (limits: Record<string, string>, requests: Record<string, string> = {}) => ({
  template: {
    spec: { containers: [{ name: "ray", image: "rayproject/ray:2.56.0", resources: { limits, requests } }] },
  },
});

const headText = (group: Parameters<typeof headGroup>[0]) =>
  startText("head", headStartParams(rayCluster({ headGroupSpec: headGroup(group) })));

const workerText = (group: Parameters<typeof workerGroup>[0]) =>
  startText("worker", workerStartParams(rayCluster(), workerGroup(group), defaultSettings));

describe("the start command", () => {
  it("of a head has its CPUs rounded up and its memory limit", () => {
    expect(headText(containers({ cpu: "1500m", memory: "2Gi" }))).toBe(
      "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0  --memory=2147483648  --metrics-export-port=8080  --num-cpus=2 ",
    );
  });

  it("of a worker has its labels, its logical resources, its GPUs and its TPUs", () => {
    const text = workerText({
      labels: { zone: "a" },
      resources: { CPU: "2", memory: "1Gi", Foo: "1" },
      ...containers({ memory: "3Gi", "nvidia.com/gpu": "1", "google.com/tpu": "4" }),
    });
    expect(text).toBe(
      `ray start  --address=demo-head-svc.ns1.svc.cluster.local:6379  --block  --dashboard-agent-listen-port=52365  --labels=zone=a  --memory=1073741824  --metrics-export-port=8080  --num-cpus=2  --num-gpus=1  --resources='{"Foo":1,"TPU":4}' `,
    );
  });

  it.each([
    ["include-dashboard", "False", " --include-dashboard=False "],
    ["bar", "True", " --bar "],
    ["port", "6380", " --port=6380 "],
    ["redis-password", "$REDIS_PASSWORD", " --redis-password=$REDIS_PASSWORD "],
  ])("spells %s: %s as the user knows it from KubeRay", (key, value, flag) => {
    expect(headText({ rayStartParams: { [key]: value } })).toContain(flag);
  });

  it("leaves out a switch that is off", () => {
    expect(headText({ rayStartParams: { foo: "FALSE" } })).not.toContain("foo");
  });

  it("keeps what the user set over what the container has", () => {
    expect(headText({ rayStartParams: { "num-cpus": "0" }, ...containers({ cpu: "4" }) })).toContain("--num-cpus=0 ");
  });

  it("takes CPUs from the request where there is no limit, but no memory", () => {
    const text = headText(containers({}, { cpu: "3", memory: "1Gi" }));
    expect(text).toContain("--num-cpus=3 ");
    expect(text).not.toContain("--memory");
  });

  it("counts a slice of a GPU as a GPU", () => {
    expect(headText(containers({ "nvidia.com/mig-1g.5gb": "2" }))).toContain("--num-gpus=2 ");
  });

  it("offers the GPUs even when the user's resources are not JSON", () => {
    const text = headText({ rayStartParams: { resources: "'{broken'" }, ...containers({ "nvidia.com/gpu": "1" }) });
    expect(text).toContain("--num-gpus=1 ");
    expect(text).toContain("--resources='{broken' ");
  });

  it("adds neuron cores to resources that the user gave", () => {
    const text = headText({
      rayStartParams: { resources: `'{"A": 2}'` },
      ...containers({ "aws.amazon.com/neuroncore": "4" }),
    });
    expect(text).toContain(`--resources='{"A":2,"neuron_cores":4}' `);
  });

  it("has fractions of a resource of the user's own", () => {
    expect(workerText({ resources: { Foo: "500m" } })).toContain(`--resources='{"Foo":0.5}' `);
  });

  it("cannot be broken out of by a quote in the name of a resource", () => {
    expect(workerText({ resources: { "a'b": "1" } })).toContain(`--resources='{"a'\\''b":1}' `);
  });
});

describe("the command of the Ray container", () => {
  const container = { name: "ray", image: "i" };

  it("raises the limit of open files, then starts Ray", () => {
    expect(startCommand(container, "ray start --head ", defaultSettings)).toEqual({
      command: ["/bin/bash", "-c", "--"],
      args: ["ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; ray start --head "],
    });
  });

  it("runs in a login shell where the administrator wants one", () => {
    expect(startCommand(container, "", { ...defaultSettings, loginShell: true }).command).toEqual([
      "/bin/bash",
      "-cl",
      "--",
    ]);
  });

  it("runs the user's own command first", () => {
    const own = { ...container, command: ["bash", "-c", "echo a b"], args: ["x"] };
    expect(startCommand(own, "ray start ", defaultSettings).args).toEqual([
      " bash  -c  echo a b  x  && ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; ray start ",
    ]);
  });

  it("leaves a command alone that starts Ray itself", () => {
    const own = { ...container, command: ["bash", "-c", "ray start --head --block"] };
    expect(startCommand(own, "ray start ", defaultSettings)).toEqual({});
  });
});
