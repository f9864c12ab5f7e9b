// What tests need of Kubernetes' world, built from the Go modules beside this file, once, into the cache. The go.mod files
// pin the versions, and nothing else names them.
//
// `node hack/kubernetes/build.js [SET]` prints the folder that has the programs of a set: `control-plane` (the default:
// etcd, kube-apiserver, kube-controller-manager, and kubectl to speak to it; KUBEBUILDER_ASSETS where that has them all),
// `node` (what makes a cluster of that: kube-scheduler, kubelet, kube-proxy, CoreDNS), `helm`, or `kueue`. Progress goes to
// standard error; the exit code is 3 where they cannot be built.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, realpathSync, renameSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const OLDEST_GO = [1, 25];

/** The version of Kubernetes, of all of its programs. */
export const kubernetes = pinned("control-plane", "k8s.io/kubernetes");
const etcd = pinned("etcd", "go.etcd.io/etcd/server/v3");
const coredns = pinned("coredns", "github.com/coredns/coredns");
const helm = pinned("helm", "helm.sh/helm/v3");
export const kueue = pinned("kueue", "sigs.k8s.io/kueue");
const ofKubernetes = (name) => ({
  name,
  title: `${name} ${kubernetes}`,
  module: "control-plane",
  path: `k8s.io/kubernetes/cmd/${name}`,
  flags: `-s -w ${named(kubernetes)}`,
});
const SETS = {
  "control-plane": {
    title: "a Kubernetes control plane",
    version: `${kubernetes}-etcd-${etcd}`,
    assets: "KUBEBUILDER_ASSETS",
    programs: [
      { name: "etcd", title: `etcd ${etcd}`, module: "etcd", path: "go.etcd.io/etcd/server/v3", flags: "-s -w" },
      ofKubernetes("kube-apiserver"),
      ofKubernetes("kube-controller-manager"),
      ofKubernetes("kubectl"),
    ],
  },
  node: {
    title: "a Kubernetes node",
    version: `${kubernetes}-coredns-${coredns}`,
    programs: [
      ofKubernetes("kube-scheduler"),
      ofKubernetes("kubelet"),
      ofKubernetes("kube-proxy"),
      {
        name: "coredns",
        title: `coredns ${coredns}`,
        module: "coredns",
        path: "raykeeper.dev/hack/coredns",
        flags: "-s -w",
      },
    ],
  },
  helm: {
    title: "Helm",
    version: `helm-${helm}`,
    programs: [
      {
        name: "helm",
        title: `helm ${helm}`,
        module: "helm",
        path: "helm.sh/helm/v3/cmd/helm",
        flags: `-s -w ${ofHelm()}`,
      },
    ],
  },
  kueue: {
    title: "Kueue",
    version: `kueue-${kueue}`,
    programs: [
      {
        // As its own image calls it.
        name: "manager",
        title: `kueue ${kueue}`,
        module: "kueue",
        path: "sigs.k8s.io/kueue/cmd/kueue",
        flags: `-s -w -X sigs.k8s.io/kueue/pkg/version.GitVersion=${kueue}`,
      },
    ],
  },
};
const cache = resolve(process.env.RAYKEEPER_CACHE || join(here, "..", "..", ".cache"));
const folderOf = (set) => join(cache, "kubernetes", SETS[set].version);
/** Where the programs of a set are once they are built. */
export const builtOf = (set) => join(folderOf(set), "bin");

/** Why a set cannot be had on this machine; undefined when it can. */
export function whyNot(set = "control-plane") {
  if (found(set)) return undefined;
  const { title, assets: variable } = SETS[set];
  const assets = variable && process.env[variable];
  let elsewhere = "";
  if (assets) {
    const lacking = missingIn(set, assets).map(({ name }) => name);
    elsewhere = `, and ${variable} (${assets}) lacks ${lacking.join(" and ")}`;
  } else if (variable) elsewhere = `, and ${variable} is not set`;
  const version = /go(\d+)\.(\d+)/.exec(
    spawnSync("go", ["env", "GOVERSION"], { cwd: here, env: environment(), encoding: "utf8" }).stdout ?? "",
  );
  if (!version) return `there is no Go to build ${title} with${elsewhere}`;
  const [major, minor] = version.slice(1).map(Number);
  if (major > OLDEST_GO[0] || minor >= OLDEST_GO[1]) return undefined;
  return `building ${title} takes Go ${OLDEST_GO.join(".")} or newer, not ${version[0]}${elsewhere}`;
}

/** The folder with all programs of a set, if there is one already. */
export function found(set = "control-plane") {
  const assets = process.env[SETS[set].assets ?? ""];
  return [assets, builtOf(set)].find((candidate) => candidate && missingIn(set, candidate).length === 0);
}

function missingIn(set, candidate) {
  return SETS[set].programs.filter(({ name }) => !existsSync(join(candidate, name)));
}

/** Linker flags without which a program calls itself v0.0.0, and whoever checks its version turns away. */
function named(version) {
  const [major, minor] = version.slice(1).split(".");
  const at = "k8s.io/component-base/version";
  return `-X ${at}.gitVersion=${version} -X ${at}.gitMajor=${major} -X ${at}.gitMinor=${minor}`;
}

/** Its own version, and which Kubernetes it takes for granted where it speaks to none. */
function ofHelm() {
  const minor = pinned("helm", "k8s.io/client-go").split(".")[1];
  const k8s = ["pkg/chartutil", "pkg/lint/rules"].map(
    (at) => `-X helm.sh/helm/v3/${at}.k8sVersionMajor=1 -X helm.sh/helm/v3/${at}.k8sVersionMinor=${minor}`,
  );
  return [`-X helm.sh/helm/v3/internal/version.version=${helm}`, ...k8s].join(" ");
}

function pinned(module, dependency) {
  const text = readFileSync(join(here, module, "go.mod"), "utf8");
  return text.split(/\s+/)[text.split(/\s+/).indexOf(dependency, text.split(/\s+/).indexOf("require")) + 1];
}

/** Where Go has a dependency's sources: what is not compiled into the program is there, its manifests for one. */
export function sourcesOf(module, dependency) {
  const { status, stdout, stderr } = spawnSync("go", ["mod", "download", "-json", dependency], {
    cwd: join(here, module),
    env: environment(),
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the sources of ${dependency} cannot be had:\n${stderr}${stdout}`);
  return JSON.parse(stdout).Dir;
}

function environment() {
  // The Go that is there, and go.sum as it is committed. Static, so that the programs run wherever the cache is taken.
  return {
    ...process.env,
    CGO_ENABLED: "0",
    GOTOOLCHAIN: "local",
    GOWORK: "off",
    GOFLAGS: "-mod=readonly -buildvcs=false",
  };
}

async function build(set) {
  const built = builtOf(set);
  const unfinished = join(folderOf(set), "unfinished");
  rmSync(unfinished, { recursive: true, force: true });
  for (const path of [unfinished, built]) mkdirSync(path, { recursive: true });
  const missing = missingIn(set, built);
  for (const module of new Set(missing.map((program) => program.module))) {
    const programs = missing.filter((program) => program.module === module);
    await compile(programs, unfinished);
    // Beside its place, so that moving it there is one step; a build that was killed leaves nothing that looks finished.
    for (const { name } of programs) renameSync(join(unfinished, name), join(built, name));
  }
  rmSync(unfinished, { recursive: true });
}

/** Programs of one module, in one go; a line when it begins, every half minute, and when it is done: it takes minutes. */
function compile(programs, folder) {
  const started = Date.now();
  let compiled = 0;
  const seconds = () => Math.round((Date.now() - started) / 1000);
  const title = programs.map((program) => program.title).join(", ");
  say(`building ${title} …`);
  const timer = setInterval(() => say(`building ${title}: ${seconds()} s, ${compiled} packages`), 30_000);
  // Each is named after its package, but for one that is alone.
  const output = programs.length > 1 ? `${folder}/` : join(folder, programs[0].name);
  const go = [
    "go",
    "build",
    "-v",
    "-trimpath",
    "-ldflags",
    programs[0].flags,
    "-o",
    output,
    ...programs.map(({ path }) => path),
  ];
  // A SIGKILL of this process takes the compiler along.
  const child = spawn("setpriv", ["--pdeathsig", "TERM", ...go], {
    cwd: join(here, programs[0].module),
    env: environment(),
    stdio: ["ignore", "inherit", "pipe"],
  });
  let told = "";
  child.stderr.on("data", (data) => {
    const text = String(data);
    compiled += text.split("\n").length - 1;
    told = (told + text).slice(-4000);
  });
  return new Promise((done, failed) => {
    child.on("error", failed);
    child.on("close", (code, signal) => {
      clearInterval(timer);
      if (code !== 0) return failed(new Error(`building ${title} failed (${signal ?? code}):\n${told}`));
      say(`built ${title} in ${seconds()} s`);
      done();
    });
  });
}

function say(line) {
  console.error(`[kubernetes] ${line}`);
}

async function main([set = "control-plane", locked]) {
  if (!(set in SETS)) {
    say(`there is no set ${set}; there are ${Object.keys(SETS).join(", ")}`);
    return 2;
  }
  const reason = whyNot(set);
  if (reason) {
    say(reason);
    return 3;
  }
  if (!found(set)) {
    mkdirSync(folderOf(set), { recursive: true });
    if (locked) await build(set);
    else {
      // Two test runs on one machine build once. The lock goes with its holder, whatever ends it.
      const again = [process.execPath, fileURLToPath(import.meta.url), set, "--locked"];
      const { status } = spawnSync(
        "setpriv",
        ["--pdeathsig", "TERM", "flock", "--exclusive", "--no-fork", join(folderOf(set), "lock"), ...again],
        {
          stdio: ["ignore", "ignore", "inherit"],
        },
      );
      if (status !== 0) return 1;
    }
  }
  console.log(found(set));
  return 0;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  process.exit(await main(process.argv.slice(2)));
}
