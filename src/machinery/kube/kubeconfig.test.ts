import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { VirtualClock } from "../virtualClock.ts";
import { ConnectionError } from "./connection.ts";
import { inCluster, isInCluster, loadKubeconfig } from "./kubeconfig.ts";

describe("the kubeconfig", () => {
  let directory: string;
  let clock: VirtualClock;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "raykeeper-kubeconfig-"));
    clock = new VirtualClock();
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  function write(name: string, content: unknown): string {
    const path = join(directory, name);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, typeof content === "string" ? content : stringify(content));
    return path;
  }
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const config = (user: object, cluster: object = {}) => ({
    "current-context": "here",
    contexts: [{ name: "here", context: { cluster: "c", user: "u", namespace: "team" } }],
    clusters: [{ name: "c", cluster: { server: "https://10.0.0.1:6443/", ...cluster } }],
    users: [{ name: "u", user }],
  });
  const load = (content: unknown, env: NodeJS.ProcessEnv = {}) =>
    loadKubeconfig(write("config", content), undefined, { clock, env });
  /** A plugin that prints what `answer` says and leaves a line in a file for each run. */
  function plugin(name: string, answer: object, more = ""): string {
    const path = write(
      name,
      `#!/bin/sh\necho "$KUBERNETES_EXEC_INFO" >> ${join(directory, "runs")}\n${more}\ncat <<'EOF'\n${JSON.stringify(answer)}\nEOF\n`,
    );
    chmodSync(path, 0o755);
    return path;
  }
  const runs = () => readFileSync(join(directory, "runs"), "utf8").trim().split("\n");
  const V1 = "client.authentication.k8s.io/v1";
  const credential = (status: object, apiVersion = V1) => ({ apiVersion, kind: "ExecCredential", status });

  describe("where it is", () => {
    it("is the file named, else those in KUBECONFIG, else the one at home", () => {
      const at = (server: string) => config({}, { server });
      const named = write("named", at("https://named"));
      const env = { KUBECONFIG: write("listed", at("https://listed")) };
      write(".kube/config", at("https://home"));
      expect(loadKubeconfig(named, undefined, { env, home: directory }).server).toBe("https://named");
      expect(loadKubeconfig(undefined, undefined, { env, home: directory }).server).toBe("https://listed");
      expect(loadKubeconfig(undefined, undefined, { env: {}, home: directory }).server).toBe("https://home");
    });

    it("is several files in one, of which the first to name something wins and the missing are passed over", async () => {
      const first = write("one/config", {
        contexts: [{ name: "mine", context: { cluster: "c", user: "u" } }],
        users: [{ name: "u", user: { tokenFile: "token" } }],
      });
      write("one/token", "from one\n");
      const second = write("two/config", { ...config({ token: "from two" }), "current-context": "mine" });
      const env = { KUBECONFIG: [join(directory, "none"), first, second].join(":") };
      const connection = loadKubeconfig(undefined, undefined, { env, clock });
      expect(connection.server).toBe("https://10.0.0.1:6443");
      expect(connection.namespace).toBeUndefined();
      expect((await connection.credentials()).token).toBe("from one");
      expect(loadKubeconfig(undefined, "here", { env }).namespace).toBe("team");
    });

    it.each([
      ["no file", () => loadKubeconfig("/nonexistent"), "no kubeconfig at /nonexistent"],
      ["no current context", () => load({ ...config({}), "current-context": "" }), "no current-context"],
      ["an unknown context", () => loadKubeconfig(write("config", config({})), "there"), 'no context "there"'],
      ["an unknown cluster", () => load({ ...config({}), clusters: [] }), 'cluster "c", which has no server'],
      ["an unknown user", () => load({ ...config({}), users: null }), 'user "u", which does not exist'],
      ["no YAML", () => load("a: [b"), "cannot be read"],
      ["a list", () => load("- a"), "is no kubeconfig"],
      [
        "basic authentication",
        () => load(config({ username: "u", password: "p" })),
        "no longer accepts a username and password",
      ],
      [
        "an auth provider",
        () => load(config({ "auth-provider": { name: "gcp" } })),
        'auth-provider "gcp" is no longer supported',
      ],
      ["half a certificate", () => load(config({ "client-certificate": "x" })), "go together"],
      [
        "trust in anyone and in someone",
        () => load(config({}, { "insecure-skip-tls-verify": true, "certificate-authority-data": base64("x") })),
        "contradiction",
      ],
    ])("is refused in words: %s", (_, act, words) => {
      expect(act).toThrow(ConnectionError);
      expect(act).toThrow(words);
    });
  });

  it("carries what concerns the server", () => {
    const connection = load(
      config(
        { as: "eve", "as-groups": ["a", "b"] },
        {
          "insecure-skip-tls-verify": true,
          "tls-server-name": "kubernetes",
          "proxy-url": "http://proxy",
        },
      ),
    );
    expect(connection).toMatchObject({
      insecureSkipTlsVerify: true,
      tlsServerName: "kubernetes",
      proxyUrl: "http://proxy",
      namespace: "team",
      headers: { "impersonate-user": "eve", "impersonate-group": ["a", "b"] },
    });
  });

  it("takes certificates from data, or from files beside it", async () => {
    const data = { "client-certificate-data": base64("CERT"), "client-key-data": base64("KEY") };
    expect(await load(config(data, { "certificate-authority-data": base64("CA") })).credentials()).toMatchObject({
      ca: "CA",
      cert: "CERT",
      key: "KEY",
    });
    for (const name of ["ca", "cert", "key"]) write(name, `${name} of the file`);
    const files = { "client-certificate": "cert", "client-key": "./key" };
    expect(await load(config(files, { "certificate-authority": "ca" })).credentials()).toMatchObject({
      ca: "ca of the file",
      cert: "cert of the file",
      key: "key of the file",
    });
  });

  it("reads a token file again after a while, and at once when the token was not accepted", async () => {
    write("token", "one\n");
    const connection = load(config({ tokenFile: "token", token: "older" }));
    const token = async () => (await connection.credentials()).token;
    expect(await token()).toBe("one");
    write("token", "two\n");
    expect(await token()).toBe("one");
    await clock.advance(10_000);
    expect(await token()).toBe("two");
    write("token", "three\n");
    connection.refresh();
    expect(await token()).toBe("three");
    // Between removal and replacement the old one is shown.
    rmSync(join(directory, "token"));
    connection.refresh();
    expect(await token()).toBe("three");
  });

  describe("with an exec plugin", () => {
    it.each([V1, "client.authentication.k8s.io/v1beta1"])(
      "runs it once for all, until its credential is about to expire (%s)",
      async (apiVersion) => {
        const expirationTimestamp = new Date(clock.now() + 60_000).toISOString();
        plugin("plugin", credential({ token: "t", expirationTimestamp }, apiVersion));
        const connection = load(config({ exec: { apiVersion, command: "./plugin", interactiveMode: "Never" } }));
        const all = await Promise.all([connection.credentials(), connection.credentials()]);
        expect(all.map(({ token }) => token)).toEqual(["t", "t"]);
        expect(JSON.parse(runs()[0]!)).toEqual({ apiVersion, kind: "ExecCredential", spec: { interactive: false } });
        await clock.advance(49_999);
        await connection.credentials();
        expect(runs()).toHaveLength(1);
        await clock.advance(1);
        await connection.credentials();
        expect(runs()).toHaveLength(2);
      },
    );

    it("runs it again when what it gave was not accepted", async () => {
      plugin("plugin", credential({ clientCertificateData: "C", clientKeyData: "K" }));
      const connection = load(config({ exec: { apiVersion: V1, command: "./plugin" } }));
      expect(await connection.credentials()).toMatchObject({ cert: "C", key: "K" });
      connection.refresh();
      await connection.credentials();
      expect(runs()).toHaveLength(2);
    });

    it("passes arguments, environment and the cluster on", async () => {
      plugin("plugin", credential({ token: "t" }), `test "$1 $REGION $HOME" = "get north $HOME" || exit 1`);
      const exec = {
        apiVersion: V1,
        command: "./plugin",
        args: ["get"],
        env: [{ name: "REGION", value: "north" }],
        provideClusterInfo: true,
      };
      const connection = load(config({ exec }, { "certificate-authority-data": base64("CA") }), { ...process.env });
      expect((await connection.credentials()).token).toBe("t");
      expect(JSON.parse(runs()[0]!).spec.cluster).toEqual({
        server: "https://10.0.0.1:6443/",
        "certificate-authority-data": base64("CA"),
      });
    });

    it.each([
      [
        "is missing",
        { command: "no-such-plugin", installHint: "Ask your admin." },
        "no-such-plugin is not installed. Ask your admin.",
      ],
      ["fails", { command: "./fails" }, "failed: login first"],
      ["prints nonsense", { command: "./nonsense" }, "printed no ExecCredential"],
      ["answers in another version", { command: "./other" }, "answered in client.authentication.k8s.io/v1beta1"],
      ["gives nothing", { command: "./nothing" }, "neither a token nor a certificate"],
    ])("that %s: the message says so, and what to do", async (_, exec, words) => {
      plugin("fails", {}, "echo login first >&2; exit 1");
      plugin("nonsense", {});
      plugin("other", credential({ token: "t" }, "client.authentication.k8s.io/v1beta1"));
      plugin("nothing", credential({}));
      const connection = load(config({ exec: { apiVersion: V1, ...exec } }), { ...process.env });
      await expect(connection.credentials()).rejects.toThrow(words);
    });

    it("that cannot work here is refused before it is run", () => {
      const exec = (more: object) => () => load(config({ exec: { apiVersion: V1, command: "x", ...more } }));
      expect(exec({ interactiveMode: "Always" })).toThrow("wants to ask a person");
      expect(exec({ apiVersion: "client.authentication.k8s.io/v1alpha1" })).toThrow(
        "speaks client.authentication.k8s.io/v1alpha1",
      );
      expect(exec({ command: "" })).toThrow("no command");
    });
  });

  describe("of a Pod", () => {
    const env = { KUBERNETES_SERVICE_HOST: "fd00::1", KUBERNETES_SERVICE_PORT: "443" };

    it("is its service account, whose token and authority rotate", async () => {
      for (const name of ["token", "ca.crt", "namespace"]) write(name, `${name} 1\n`);
      const connection = inCluster({ env, clock, directory });
      expect(connection).toMatchObject({ server: "https://[fd00::1]:443", namespace: "namespace 1" });
      expect(await connection.credentials()).toEqual({ ca: "ca.crt 1\n", token: "token 1" });
      for (const name of ["token", "ca.crt"]) write(name, `${name} 2\n`);
      await clock.advance(10_000);
      expect(await connection.credentials()).toEqual({ ca: "ca.crt 2\n", token: "token 2" });
    });

    it("is not there elsewhere", () => {
      expect([isInCluster(env), isInCluster({})]).toEqual([true, false]);
      expect(() => inCluster({ env: {} })).toThrow("does not run in a Pod");
    });
  });
});
