// `node hack/cluster/kueue.js`: Kueue on the one-node cluster, for namespaces that ask for it by the label below; does only
// what is not done yet. `node hack/cluster/kueue.js down` takes it away, with all its queues.
//
// Its manifests are those of its Go module, the ones a user installs; what is changed, and why, is in `asHere`. Nothing here
// knows of Raykeeper.
import { existsSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments, stringify } from "yaml";
import { found, kueue, sourcesOf } from "../kubernetes/build.js";
import { kueueImage, makeKueue } from "./images.js";
import { paths } from "./paths.js";
import { alone, Failure, interrupt, run, until } from "./process.js";
import { requirements } from "./requirements.js";
import { ctr, kubectl, loadImage } from "./tools.js";

/** Of the namespaces in which Kueue manages anything; elsewhere a queue's name is a label like any other. */
export const KUEUE_LABEL = { key: "raykeeper.dev/kueue", value: "managed" };
const [IMAGE] = kueueImage.names;
const NAMESPACE = "kueue-system";
const CONFIGURATION = "controller_manager_config.yaml";
const DEPLOYMENT = "deployment/kueue-controller-manager";
/** What a user's queues are made of; Workloads first, since only a manager that runs lets them go. */
const QUEUES = ["workloads", "localqueues", "clusterqueues", "cohorts", "resourceflavors", "workloadpriorityclasses"];

const began = performance.now();

async function up() {
  await build();
  if (!(await ctr("images", "list", "--quiet")).split("\n").includes(IMAGE)) await loadImage(kueueImage.archive);
  await kubectl(["apply", "--server-side", "--force-conflicts", "--filename", "-"], { input: await manifests() });
  await kubectl(["rollout", "status", DEPLOYMENT, "--namespace", NAMESPACE, "--timeout", "3m"]);
  // Its Service leads to it a moment after it is ready; nobody tells when.
  await until("Kueue's webhook does not answer", 60, answers);
  say(`Kueue ${kueue} is up, for namespaces with the label ${KUEUE_LABEL.key}=${KUEUE_LABEL.value}`);
}

async function down() {
  if (!(await isInstalled())) return say("there is no Kueue");
  const everywhere = ["--all", "--all-namespaces", "--ignore-not-found", "--timeout", "2m"];
  for (const kind of QUEUES) await kubectl(["delete", `${kind}.kueue.x-k8s.io`, ...everywhere]);
  await kubectl(["delete", "--ignore-not-found", "--filename", "-"], { input: await manifests() });
  say("Kueue is gone");
}

async function build() {
  const program = fileURLToPath(new URL("../kubernetes/build.js", import.meta.url));
  if (!found("kueue"))
    await run(process.execPath, [program, "kueue"], { onStderr: (text) => process.stderr.write(text) });
  if (existsSync(kueueImage.archive)) return;
  say("its image …");
  await makeKueue();
}

/** Its own, for this cluster. */
async function manifests() {
  const folder = join(sourcesOf("kueue", "sigs.k8s.io/kueue"), "config", "default");
  const documents = parseAllDocuments(await run(paths.kubectl, ["kustomize", folder]));
  const items = asHere(documents.map((document) => document.toJS()));
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}

/** What a user would apply, changed for this cluster. */
export function asHere(manifests) {
  const selector = { matchLabels: { [KUEUE_LABEL.key]: KUEUE_LABEL.value } };
  // Its answers to "who waits before me?"; while it does not answer, no namespace of the cluster can be deleted.
  const kept = manifests.filter(({ kind }) => kind !== "APIService");
  return kept.map((object) => {
    if (object.kind === "Deployment") return deployed(object);
    // Where Kueue has nothing to say nobody waits for its answer, or fails without it.
    if (/WebhookConfiguration$/.test(object.kind)) {
      return { ...object, webhooks: object.webhooks.map((hook) => ({ ...hook, namespaceSelector: selector })) };
    }
    if (object.kind === "ConfigMap" && object.data?.[CONFIGURATION]) {
      const configuration = {
        ...parse(object.data[CONFIGURATION]),
        managedJobsNamespaceSelector: selector,
        // So that it says, in the condition PodsReady, what it thinks of the Pods; nothing here takes as long.
        waitForPodsReady: { timeout: "15m", blockAdmission: false },
      };
      return { ...object, data: { ...object.data, [CONFIGURATION]: stringify(configuration) } };
    }
    return object;
  });
}

/** There is no registry, and of two cores none to set aside. */
function deployed(deployment) {
  const { template, ...spec } = deployment.spec;
  const containers = template.spec.containers.map(({ resources: _, ...container }) => ({
    ...container,
    image: IMAGE,
    imagePullPolicy: "IfNotPresent",
  }));
  return { ...deployment, spec: { ...spec, template: { ...template, spec: { ...template.spec, containers } } } };
}

const isInstalled = async () =>
  (await kubectl(["get", "namespace", NAMESPACE, "--ignore-not-found", "--output", "name"])) !== "";

/** Asks for what would be made, and is not. */
const answers = () =>
  kubectl(["create", "--dry-run=server", "--filename", "-"], {
    input: JSON.stringify({
      apiVersion: "kueue.x-k8s.io/v1beta2",
      kind: "ResourceFlavor",
      metadata: { name: "probe" },
    }),
  }).then(
    () => true,
    () => false,
  );

function say(line) {
  const seconds = String(Math.round((performance.now() - began) / 1000)).padStart(3);
  console.error(`[kueue ${seconds} s] ${line}`);
}

async function main([command = "up"]) {
  const commands = { up, down };
  try {
    if (!Object.hasOwn(commands, command)) throw new Failure(`there is no ${command}; there are up and down`);
    requirements();
    if (!existsSync(paths.kubeconfig)) throw new Failure("there is no cluster: npm run cluster:up makes one");
    await alone();
    const work = commands[command]();
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.on(signal, () => interrupt(work).then(() => process.exit(130)));
    }
    await work;
  } catch (error) {
    console.error(error instanceof Failure ? `[kueue] ${error.message}` : error);
    process.exitCode = 1;
  }
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  await main(process.argv.slice(2));
}
