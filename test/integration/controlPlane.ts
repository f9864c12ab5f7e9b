/**
 * A throw-away control plane: etcd, kube-apiserver and kube-controller-manager on free ports of the loopback, with
 * certificates, data and logs in one folder.
 *
 * There is no kubelet and no scheduler: tests play them. Nothing of it outlives this process, however that ends.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder, defaultCacheDir } from "../../src/local/cache.ts";
import { selfSigned } from "../../src/local/certificate.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";

export interface ControlPlane {
  readonly kubeconfig: string;
  /** What ServiceAccounts ask of the API server, a line each; for identity.ts to read. */
  readonly auditLog: string;
  /** Goes with it. */
  readonly folder: string;
  /** The folder of the programs; kubectl is among them. */
  readonly programs: string;
  close(): Promise<void>;
}

/** The controllers whose work the operator relies on; without the others the machine has more time for the tests. */
const CONTROLLERS = [
  "garbage-collector-controller",
  "namespace-controller",
  "job-controller",
  "endpointslice-controller",
  "ttl-after-finished-controller",
];
/** A watch is told when it begins: it may not end before the tests do. */
const AUDIT_POLICY = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    { level: "Metadata", userGroups: ["system:serviceaccounts"], verbs: ["watch"], omitStages: ["ResponseComplete"] },
    { level: "Metadata", userGroups: ["system:serviceaccounts"] },
    { level: "None" },
  ],
};
/** Milliseconds until all must be ready; on a machine that does much else it takes a while. */
const PATIENCE = 120_000;

/** Starts it, building the programs where they are not built yet, and waits until it serves. */
export async function startControlPlane(): Promise<ControlPlane> {
  const programs = buildPrograms("control-plane");
  const folder = await temporaryFolder("control-plane");
  const running: Program[] = [];
  const close = async () => {
    // In the reverse order, so that none complains about the one it needs.
    for (const program of running.reverse()) await program.end();
    rmSync(folder, { recursive: true, force: true });
  };
  const start = (name: string, args: readonly string[]) => {
    const program = new Program(join(programs, name), args, join(folder, `${name}.log`));
    running.push(program);
    return program;
  };
  try {
    const [etcdPort = 0, peerPort, apiPort] = await freePorts(3);
    const etcd = `http://127.0.0.1:${etcdPort}`;
    const peer = `http://127.0.0.1:${peerPort}`;
    const server = `https://127.0.0.1:${apiPort}`;
    const files = writeFiles(folder, server);
    const auditLog = join(folder, "audit.log");
    start("etcd", [
      `--data-dir=${join(folder, "data")}`,
      // Nobody needs the data after a crash.
      "--unsafe-no-fsync",
      `--listen-client-urls=${etcd}`,
      `--advertise-client-urls=${etcd}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
    ]);
    start("kube-apiserver", [
      `--etcd-servers=${etcd}`,
      "--bind-address=127.0.0.1",
      `--secure-port=${apiPort}`,
      `--tls-cert-file=${files.certificate}`,
      `--tls-private-key-file=${files.key}`,
      `--token-auth-file=${files.tokens}`,
      `--service-account-key-file=${files.serviceAccountKey}`,
      `--service-account-signing-key-file=${files.serviceAccountKey}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--service-cluster-ip-range=10.97.0.0/16",
      "--authorization-mode=Node,RBAC",
      // It refuses Pods until a namespace has its service account, which no controller makes here.
      "--disable-admission-plugins=ServiceAccount",
      // As in OpenShift: it asks for rights that nothing else asks for.
      "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
      `--audit-policy-file=${files.auditPolicy}`,
      `--audit-log-path=${auditLog}`,
      "--audit-log-mode=blocking",
    ]);
    await whenReady(files.kubeconfig, running);
    start("kube-controller-manager", [
      `--kubeconfig=${files.kubeconfig}`,
      "--secure-port=0",
      "--leader-elect=false",
      `--controllers=${CONTROLLERS.join()}`,
    ]);
    return { kubeconfig: files.kubeconfig, auditLog, folder, programs, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A folder below the cache. Those that killed processes left behind are removed. */
export async function temporaryFolder(name: string): Promise<string> {
  const parent = await cacheFolder(defaultCacheDir(), "integration");
  for (const left of readdirSync(parent)) {
    const pid = /^(\d+)-/.exec(left)?.[1];
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(parent, left), { recursive: true, force: true });
  }
  return mkdtempSync(join(parent, `${process.pid}-${name}-`));
}

/** The folder of the programs of a set. Their building tells its progress on standard error. */
export function buildPrograms(set: "control-plane" | "helm"): string {
  const script = fileURLToPath(new URL("../../hack/kubernetes/build.js", import.meta.url));
  const command = ["--pdeathsig", "TERM", process.execPath, script, set];
  return execFileSync("setpriv", command, { encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
}

/** One program of the control plane; it ends with this process, even when that is killed. */
class Program {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #log: string;
  #ending = false;

  constructor(path: string, args: readonly string[], log: string) {
    this.#name = path;
    this.#log = log;
    const output = openSync(log, "a", 0o600);
    this.#child = spawn("setpriv", ["--pdeathsig", "KILL", path, ...args], { stdio: ["ignore", output, output] });
    closeSync(output);
    this.#child.once("exit", (code, signal) => {
      if (!this.#ending) console.error(`[kubernetes] ${this.#name} ended by itself (${signal ?? code})`);
    });
  }

  /** Throws what it last said when it has ended. */
  check(): void {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null) return;
    const said = readFileSync(this.#log, "utf8").slice(-3000);
    throw new Error(`${this.#name} ended with ${signalCode ?? exitCode}:\n${said}`);
  }

  async end(): Promise<void> {
    this.#ending = true;
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    // Nothing of it is to be kept, and an API server takes its time to end in good order.
    this.#child.kill("SIGKILL");
    await ended;
  }
}

function writeFiles(folder: string, server: string) {
  const write = (name: string, text: string): string => {
    const file = join(folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    return file;
  };
  mkdirSync(join(folder, "data"), { mode: 0o700 });
  const { certificate, key } = selfSigned(Date.now());
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const token = randomBytes(24).toString("hex");
  const certificateFile = write("server.pem", certificate);
  return {
    certificate: certificateFile,
    key: write("server-key.pem", key),
    serviceAccountKey: write("service-account.pem", privateKey.export({ type: "pkcs8", format: "pem" }).toString()),
    auditPolicy: write("audit-policy.yaml", JSON.stringify(AUDIT_POLICY)),
    tokens: write("tokens.csv", `${token},tests,tests,"system:masters"\n`),
    kubeconfig: write(
      "kubeconfig",
      JSON.stringify({
        apiVersion: "v1",
        kind: "Config",
        clusters: [{ name: "tests", cluster: { server, "certificate-authority": certificateFile } }],
        users: [{ name: "tests", user: { token } }],
        contexts: [{ name: "tests", context: { cluster: "tests", user: "tests" } }],
        "current-context": "tests",
      }),
    ),
  };
}

/** Free when asked; the kernel gives none of them again soon. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  await Promise.all(servers.map((each) => once(each.listen(0, "127.0.0.1"), "listening")));
  const ports = servers.map((each) => (each.address() as { port: number }).port);
  await Promise.all(servers.map((each) => once(each.close(), "close")));
  return ports;
}

/** `/readyz` is a question: nobody tells when the answer changes. */
async function whenReady(kubeconfig: string, programs: readonly Program[]): Promise<void> {
  const transport = new HttpTransport(loadKubeconfig(kubeconfig));
  const deadline = Date.now() + PATIENCE;
  try {
    for (let said: unknown; ; await sleep(realClock, 200)) {
      for (const program of programs) program.check();
      try {
        const answer = await transport.request({ method: "GET", path: "/readyz" }, { timeout: 5000 });
        if (answer.status === 200) return;
        said = answer.body;
      } catch (error) {
        said = error;
      }
      if (Date.now() > deadline) throw new Error(`the API server is not ready after ${PATIENCE / 1000} s: ${said}`);
    }
  } finally {
    await transport.close();
  }
}
