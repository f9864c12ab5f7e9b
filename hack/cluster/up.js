// `npm run cluster:up`: from nothing, or from what is left of a cluster, to one that works. Each step does only what is
// not done yet, so a second run says that all is there, and one after a crash repairs.
//
// Ctrl-C takes back what was begun, unless the cluster was there before.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { found, kubernetes } from "../kubernetes/build.js";
import { issue } from "./certificates.js";
import { makePause, makeRay, pauseImage, rayImage } from "./images.js";
import { NODE, network, paths, RUN } from "./paths.js";
import { check, connect, holder, inside, make, remove, runs, startInside } from "./place.js";
import { alone, Failure, interrupt, run, succeeds, until } from "./process.js";
import { commands, DNS_RIGHTS, writeSettings } from "./programs.js";
import { requirements } from "./requirements.js";
import { ctr, kubectl, loadImage } from "./tools.js";

// Exactly our versions, whatever else tests may run on.
delete process.env.KUBEBUILDER_ASSETS;

const prepared = join(RUN, "prepared");
const names = Object.keys(commands);
const began = performance.now();
/** Whether there is something to be looked at when it fails. */
let begun = false;

async function up() {
  if (await works()) return say(`the cluster is up: export KUBECONFIG=${paths.kubeconfig}`);
  await Promise.all([buildPrograms(), buildImages()]);
  await preparePlace();
  begun = true;
  start("containerd");
  start("etcd");
  await Promise.all([giveImages(), startKubernetes()]);
  await step("The node", async () => {
    await until("the node is not ready", 120, nodeReady, allRun);
    await until("the cluster's DNS does not answer", 60, () => answers(`http://${network.node}:8181/ready`), allRun);
    await until("Pods have no service account yet", 60, () => asks("get", "serviceaccount", "default"), allRun);
  });
  say(`the cluster is up: export KUBECONFIG=${paths.kubeconfig}`);
}

async function buildPrograms() {
  const build = fileURLToPath(new URL("../kubernetes/build.js", import.meta.url));
  for (const set of ["control-plane", "node", "helm"]) {
    if (!found(set)) await run(process.execPath, [build, set], { onStderr: (text) => process.stderr.write(text) });
  }
}

async function buildImages() {
  await makePause();
  if (!existsSync(rayImage.archive)) await step("The Ray image", makeRay);
}

async function preparePlace() {
  if (holder() !== undefined && existsSync(prepared)) return say("repairing the cluster that is there");
  if (await remove()) say("removed what was left of an earlier cluster");
  await step("Namespaces and network", async () => {
    try {
      await make();
      await connect();
      await issue();
      writeSettings();
      writeFileSync(prepared, "");
    } catch (error) {
      await remove();
      throw error;
    }
  });
}

async function giveImages() {
  const speaks = () => succeeds(paths.ctr, ["--address", paths.containerdSocket, "version"]);
  await until("containerd does not answer", 60, speaks, () => check("containerd"));
  const there = (await ctr("images", "list", "--quiet")).split("\n");
  const missing = [pauseImage, rayImage].filter(({ names }) => !names.every((name) => there.includes(name)));
  if (missing.length === 0) return;
  await step("Images for the node", async () => {
    for (const { archive } of missing) await loadImage(archive);
  });
}

async function startKubernetes() {
  await step(`Kubernetes ${kubernetes}`, async () => {
    await until(
      "etcd does not answer",
      60,
      () => answers("http://127.0.0.1:2379/health"),
      () => check("etcd"),
    );
    start("kube-apiserver");
    await until("the API server is not ready", 120, serves, () => check("kube-apiserver"));
    const input = JSON.stringify({ apiVersion: "v1", kind: "List", items: DNS_RIGHTS });
    await kubectl(["apply", "--filename", "-"], { input });
    for (const name of names) start(name);
  });
}

function start(name) {
  if (!runs(name)) startInside(name, commands[name]);
}

function allRun() {
  for (const name of names) check(name);
}

/** Whether all of it runs and answers. */
async function works() {
  return holder() !== undefined && names.every(runs) && (await serves()) && (await nodeReady());
}

const asks = (...args) =>
  kubectl(args).then(
    (answer) => answer || true,
    () => false,
  );
const serves = () => asks("get", "--raw", "/readyz");
const nodeReady = async () =>
  (await asks("get", "node", NODE, "--output", "jsonpath={.status.conditions[?(@.type=='Ready')].status}")) === "True";
const answers = (url) =>
  inside(["busybox", "wget", "-q", "-O", "-", url]).then(
    () => true,
    () => false,
  );

function say(line) {
  const seconds = String(Math.round((performance.now() - began) / 1000)).padStart(3);
  console.error(`[cluster ${seconds} s] ${line}`);
}

/** Tells that it begins, that it goes on, and how long it took. */
async function step(title, act) {
  const started = performance.now();
  say(`${title} …`);
  const tell = (line) => say(`${title}: ${line}`);
  const timer = setInterval(() => tell(`${Math.round((performance.now() - started) / 1000)} s`), 30_000);
  try {
    await act(tell);
  } finally {
    clearInterval(timer);
  }
  say(`${title}: done in ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

let stopping = false;
try {
  requirements();
  await alone();
  const before = holder() !== undefined;
  const work = up();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
    process.on(signal, async () => {
      if (stopping) return;
      stopping = true;
      say(before ? "interrupted" : "interrupted: taking back what was begun");
      await interrupt(work);
      if (!before) await remove();
      process.exit(130);
    });
  }
  await work;
} catch (error) {
  if (!stopping) {
    console.error(error instanceof Failure ? `[cluster] ${error.message}` : error);
    if (begun) console.error("[cluster] what there is stays, to be looked at; npm run cluster:down removes it");
    process.exitCode = 1;
  }
}
