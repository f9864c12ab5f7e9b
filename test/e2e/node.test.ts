/**
 * The local node: Pods as processes with networks, files and ends of their own. Their programs are plain ones; the
 * other scenarios run a real Ray in the same Pods.
 */
import { existsSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import type { ConfigMap, Container, Pod, PodSpec, Secret, Service } from "../../src/api/kubernetes.ts";
import type { Stored } from "../../src/api/object.ts";
import { defaultCacheDir } from "../../src/local/cache.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import { configMaps, pods, secrets, services } from "../../src/machinery/kube/resources.ts";
import { RAY_VERSION } from "../support/gate.ts";
import { Gate, namespace, useCluster } from "./cluster.ts";
import { processes } from "./command.ts";

const cluster = useCluster();
const made: string[] = [];
afterEach(async () => {
  const names = made.splice(0);
  for (const name of names) {
    await cluster.client.delete(pods, namespace, name, { gracePeriodSeconds: 0 }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
  await cluster.until("the test's Pods to be gone", () => names.every((name) => !found(name)));
});

const shell = (script: string, rest: Partial<Container> = {}): Container => ({
  name: "main",
  image: `rayproject/ray:${RAY_VERSION}`,
  command: ["bash", "-c", script],
  ...rest,
});

async function run(
  name: string,
  containers: Container[],
  spec: Partial<PodSpec> = {},
  labels = {},
): Promise<Stored<Pod>> {
  made.push(name);
  return cluster.client.create<Pod>(pods, {
    metadata: { name, namespace, labels },
    spec: { restartPolicy: "Never", terminationGracePeriodSeconds: 1, ...spec, containers },
  });
}

const found = (name: string) => cluster.pods.store.get(namespace, name);
const state = (name: string, container = "main") =>
  [...(found(name)?.status?.containerStatuses ?? []), ...(found(name)?.status?.initContainerStatuses ?? [])].find(
    (one) => one.name === container,
  );
const phase = (name: string, wanted: string) =>
  cluster.until(`${name} to be ${wanted}`, () => found(name)?.status?.phase === wanted && found(name));
const isReady = (name: string) =>
  found(name)?.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
const ready = (name: string) => cluster.until(`${name} to be ready`, () => isReady(name) && found(name));
const log = async (name: string, query: Record<string, string> = {}) =>
  String(await cluster.client.raw(`/api/v1/namespaces/${namespace}/pods/${name}/log`, query));

/** Runs a script to its end and answers what it printed. */
async function printed(
  name: string,
  script: string,
  rest: Partial<Container> = {},
  spec: Partial<PodSpec> = {},
): Promise<string> {
  await run(name, [shell(script, rest)], spec);
  await cluster.until(`${name} to end`, () => state(name)?.state?.terminated);
  return log(name);
}

describe("a container", () => {
  it("sees its own machine: names, user, home, and Python with Ray first on its path", async () => {
    const text = await printed(
      "own",
      "hostname; whoami; pwd; echo $HOME; command -v python; ls -A /home/ray /tmp; env | cut -d= -f1 | sort | tr '\\n' ' '",
    );
    expect(text.split("\n").slice(0, 5)).toEqual([
      "own",
      "ray",
      "/home/ray",
      "/home/ray",
      "/home/ray/anaconda3/bin/python",
    ]);
    expect(text).toContain("anaconda3\n");
    // Nothing of whoever started the cluster.
    expect(text).not.toMatch(/RAYKEEPER|npm_|VITEST|SSH|XDG/);
  });

  it("cannot change the machine, nor look into anybody's home or another Pod's files", async () => {
    const secret = `${homedir()}/.bashrc`;
    const text = await printed(
      "harmless",
      `for path in /etc/x /usr/x /var/x /x; do touch $path 2>/dev/null && echo "wrote $path"; done; cat ${secret} 2>/dev/null; ls -d ${defaultCacheDir()}/* 2>/dev/null; mount -o remount,rw / 2>/dev/null && echo remounted; touch /tmp/x /dev/shm/x /home/ray/x && echo private`,
    );
    expect(text).toBe("private\n");
  });

  it("gets its variables, command and volumes as the Pod says, byte for byte", async () => {
    const data = { KEY: 'it\'s $(NAME) "quoted" `tick` \\ ü\nline' };
    await cluster.client.create<ConfigMap>(configMaps, { metadata: { name: "node-test", namespace }, data });
    const password = Buffer.from("p\u0000w$$").toString("base64");
    await cluster.client.create<Secret>(secrets, { metadata: { name: "node-test", namespace }, data: { password } });
    try {
      const text = await printed(
        "exact",
        'printf \'%s\\n\' "$1" "$KEY" "$NAME" "$IP"; cat /files/deep/key; base64 /secret/password; cat /one; stat -Lc %a /secret/password; (echo x > /files/new) 2>/dev/null || echo read-only; echo kept > /scratch/sub/f',
        {
          args: ["name", "$(NAME)-$$(NAME)-$(NOPE)"],
          env: [
            { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
            { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
          ],
          envFrom: [{ configMapRef: { name: "node-test" } }],
          volumeMounts: [
            { name: "files", mountPath: "/files" },
            { name: "files", mountPath: "/one", subPath: "deep/key" },
            { name: "secret", mountPath: "/secret" },
            { name: "scratch", mountPath: "/scratch/sub" },
          ],
        },
        {
          volumes: [
            { name: "files", configMap: { name: "node-test", items: [{ key: "KEY", path: "deep/key" }] } },
            { name: "secret", secret: { secretName: "node-test", defaultMode: 0o400 } },
            { name: "scratch", emptyDir: {} },
          ],
        },
      );
      const address = found("exact")!.status!.podIP;
      expect(text).toBe(
        `exact-$(NAME)-$(NOPE)\n${data.KEY}\nexact\n${address}\n${data.KEY}${password}\n${data.KEY}400\nread-only\n`,
      );
      expect(state("exact")?.state?.terminated?.exitCode).toBe(0);
    } finally {
      await cluster.client.delete(configMaps, namespace, "node-test");
      await cluster.client.delete(secrets, namespace, "node-test");
    }
  });

  it("waits for the ConfigMap it needs, and starts when it comes", async () => {
    const env = [{ name: "X", valueFrom: { configMapKeyRef: { name: "node-late", key: "x" } } }];
    await run("late", [shell("echo got $X", { env })]);
    await cluster.until("a reason", () => state("late")?.state?.waiting?.reason === "CreateContainerConfigError");
    expect(state("late")?.state?.waiting?.message).toContain('configmap "node-late" not found');
    await cluster.client.create<ConfigMap>(configMaps, {
      metadata: { name: "node-late", namespace },
      data: { x: "it" },
    });
    try {
      await phase("late", "Succeeded");
      expect(await log("late")).toBe("got it\n");
    } finally {
      await cluster.client.delete(configMaps, namespace, "node-late");
    }
  });
});

describe("a Pod's life", () => {
  it("is its init containers in order, then its containers together; the exit codes are kept", async () => {
    const share = { volumeMounts: [{ name: "share", mountPath: "/share" }] };
    await run(
      "order",
      [
        shell("cat /share/log; exit 3", share),
        shell("echo last words > /dev/termination-log", { ...share, name: "other" }),
      ],
      {
        initContainers: [
          shell("echo first >> /share/log; sleep 0.3", { ...share, name: "one" }),
          shell("echo second >> /share/log", { ...share, name: "two" }),
        ],
        volumes: [{ name: "share", emptyDir: {} }],
      },
    );
    await phase("order", "Failed");
    expect(await log("order", { container: "main" })).toBe("first\nsecond\n");
    expect(state("order")?.state?.terminated).toMatchObject({ exitCode: 3, reason: "Error" });
    expect(state("order", "other")?.state?.terminated).toMatchObject({
      exitCode: 0,
      reason: "Completed",
      message: "last words\n",
    });
  });

  it("fails when an init container does, without starting the others", async () => {
    await run("stuck", [shell("echo never")], { initContainers: [shell("exit 4", { name: "init" })] });
    await phase("stuck", "Failed");
    expect(state("stuck")?.state?.waiting?.reason).toBe("PodInitializing");
  });

  it("goes on after a crash, ever more slowly, with the previous log at hand", async () => {
    await run("crash", [shell("echo from $RANDOM; exit 1")], { restartPolicy: "Always" });
    await cluster.until("a back-off", () => state("crash")?.state?.waiting?.reason === "CrashLoopBackOff");
    expect(state("crash")).toMatchObject({ restartCount: 1, lastState: { terminated: { exitCode: 1 } } });
    const [current, previous] = [await log("crash"), await log("crash", { previous: "true" })];
    expect(previous).toMatch(/^from \d+\n$/);
    expect(current).not.toBe(previous);
  });

  it("says that a program cannot be started", async () => {
    await run("nope", [shell("", { command: ["/no/such/program"] })]);
    await phase("nope", "Failed");
    expect(state("nope")?.state?.terminated).toMatchObject({ exitCode: 128, reason: "StartError" });
    expect(state("nope")?.state?.terminated?.message).toContain("/no/such/program");
  });

  it("is ready when its probe says so, and its container is restarted when it is found dead", async () => {
    const probe = (command: string) => ({
      exec: { command: ["sh", "-c", command] },
      periodSeconds: 1,
      failureThreshold: 1,
    });
    await run(
      "probed",
      [
        shell("trap 'exit 0' TERM; touch /tmp/alive; sleep 2; touch /tmp/ready; while true; do sleep 0.2; done", {
          readinessProbe: probe("test -e /tmp/ready"),
          livenessProbe: { ...probe("test -e /tmp/alive"), initialDelaySeconds: 1 },
        }),
      ],
      { restartPolicy: "Always" },
    );
    const running = await cluster.until("it to run", () => state("probed")?.state?.running && found("probed"));
    expect(running.status?.containerStatuses?.[0]?.ready).toBe(false);
    const { containerID } = running.status!.containerStatuses![0]!;
    await ready("probed");
    const inside = processes().find(
      ({ command }) => command.includes("touch /tmp/alive") && command.startsWith("bash"),
    )!;
    expect(inside).toBeDefined();
    // The container's own files are only to be reached through its process.
    const root = `/proc/${inside.pid}/root`;
    rmSync(`${root}/tmp/alive`);
    await cluster.until(
      "a restart",
      () => (state("probed")?.restartCount ?? 0) === 1 && state("probed")?.containerID !== containerID,
    );
    await ready("probed");
  });

  it("ends within its grace period, whatever its program does, and at once by force", async () => {
    await run(
      "polite",
      [
        shell("trap 'echo goodbye >> /gone/log; exit 0' TERM; while true; do sleep 0.1; done", {
          volumeMounts: [{ name: "gone", mountPath: "/gone" }],
        }),
      ],
      {
        terminationGracePeriodSeconds: 60,
        volumes: [{ name: "gone", hostPath: { path: gate.folder } }],
      },
    );
    await run("stubborn", [shell("trap '' TERM; while true; do sleep 0.1; done")], {
      terminationGracePeriodSeconds: 3600,
    });
    await ready("polite");
    await ready("stubborn");
    await cluster.client.delete(pods, namespace, "polite");
    await cluster.until("polite to be gone", () => !found("polite"));
    expect(existsSync(`${gate.folder}/log`)).toBe(true);

    await cluster.client.delete(pods, namespace, "stubborn");
    await cluster.until("stubborn to be on its way out", () => found("stubborn")?.metadata.deletionTimestamp);
    expect(state("stubborn")?.state?.running).toBeDefined();
    await cluster.client.delete(pods, namespace, "stubborn", { gracePeriodSeconds: 0 });
    await expect.poll(() => processes().some(({ command }) => command.includes("trap '' TERM"))).toBe(false);
  });
  const gate = new Gate();
  afterAll(() => gate.remove());

  it("shows a log while it is written", async () => {
    await run("talk", [shell("for i in 1 2 3; do echo line $i; sleep 0.3; done")]);
    await cluster.until("it to run", () => state("talk")?.state?.running ?? state("talk")?.state?.terminated);
    const lines: string[] = [];
    const path = `/api/v1/namespaces/${namespace}/pods/talk/log`;
    for await (const line of await cluster.client.rawLines(path, { follow: "true" })) lines.push(line);
    expect(lines.filter(Boolean)).toEqual(["line 1", "line 2", "line 3"]);
    expect(await log("talk", { tailLines: "1" })).toBe("line 3\n");
  });
});

describe("Pods among each other", () => {
  it("use the same port side by side, and reach each other by the names of Services", async () => {
    const serve = (text: string) =>
      shell(`mkdir /tmp/w; echo ${text} > /tmp/w/index.html; exec python -m http.server 8000 --directory /tmp/w`, {
        readinessProbe: { httpGet: { port: 8000 }, periodSeconds: 1 },
      });
    const service = (name: string): Service => ({
      metadata: { name, namespace },
      spec: { selector: { app: name }, ports: [{ port: 8000 }] },
    });
    for (const name of ["left", "right"]) {
      await cluster.client.create<Service>(services, service(name));
      await run(name, [serve(`i-am-${name}`)], {}, { app: name });
    }
    try {
      await ready("left");
      await ready("right");
      const get =
        "python -c 'import sys, urllib.request as u; [print(u.urlopen(\"http://%s:8000\" % n).read().decode().strip()) for n in sys.argv[1:]]'";
      expect(await printed("alone", `${get} localhost 2>/dev/null || echo nobody`)).toBe("nobody\n");
      expect(
        await printed(
          "ask",
          `${get} left right.${namespace} left.${namespace}.svc right.${namespace}.svc.cluster.local`,
        ),
      ).toBe("i-am-left\ni-am-right\ni-am-left\ni-am-right\n");
      await cluster.client.delete(pods, namespace, "left", { gracePeriodSeconds: 0 });
      expect(
        await printed(
          "ask-late",
          `for i in $(seq 50); do getent hosts left >/dev/null || { echo gone; exit; }; sleep 0.1; done; echo still there`,
        ),
      ).toBe("gone\n");
    } finally {
      for (const name of ["left", "right"]) await cluster.client.delete(services, namespace, name);
    }
  });
});

describe("a Pod that cannot run here", () => {
  it("is told what the local node can run, when its image is none of Ray", async () => {
    await run("foreign", [shell("", { image: "nginx:1.27" })]);
    await cluster.until("a refusal", () =>
      /ErrImagePull|ImagePullBackOff/.test(state("foreign")?.state?.waiting?.reason ?? ""),
    );
    expect(state("foreign")?.state?.waiting?.message).toContain("rayproject/ray:2.56.0");
  });

  it("is told what the machine lacks", async () => {
    await run("huge", [shell("", { resources: { requests: { cpu: "999" } } })]);
    const pod = await cluster.until("a verdict", () =>
      found("huge")?.status?.conditions?.find(({ type, status }) => type === "PodScheduled" && status === "False"),
    );
    expect(pod).toMatchObject({ reason: "Unschedulable", message: expect.stringContaining("Insufficient cpu") });
  });
});
