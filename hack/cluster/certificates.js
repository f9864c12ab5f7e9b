// Who is who in the cluster: an authority, certificates for servers, and a kubeconfig for each that talks to the API
// server, all made anew with every cluster.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { NODE, network, RUN } from "./paths.js";
import { run } from "./process.js";

export const folder = join(RUN, "certificates");
export const authority = join(folder, "authority.pem");
export const server = `https://${network.node}:6443`;
export const certificate = (name) => join(folder, `${name}.pem`);
export const key = (name) => join(folder, `${name}-key.pem`);
export const kubeconfig = (name) => (name === "admin" ? join(RUN, "kubeconfig") : join(RUN, `${name}.kubeconfig`));

const api = [
  "localhost",
  "kubernetes",
  "kubernetes.default",
  "kubernetes.default.svc",
  "kubernetes.default.svc.cluster.local",
];
const SERVERS = {
  apiserver: [...api.map((name) => `DNS:${name}`), ...["127.0.0.1", network.node, network.api].map((ip) => `IP:${ip}`)],
  "kubelet-server": [`DNS:${NODE}`, `IP:${network.node}`],
};
/** Name and group, as Kubernetes' own roles are bound to them. */
const CLIENTS = {
  admin: ["kubernetes-admin", "system:masters"],
  "kube-controller-manager": ["system:kube-controller-manager"],
  "kube-scheduler": ["system:kube-scheduler"],
  "kube-proxy": ["system:kube-proxy"],
  kubelet: [`system:node:${NODE}`, "system:nodes"],
  coredns: ["system:coredns"],
  "apiserver-to-kubelet": ["kube-apiserver-kubelet-client", "system:masters"],
  "front-proxy": ["front-proxy-client"],
};

export async function issue() {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const valid = ["-days", "365"];
  const openssl = (...args) => run("openssl", args, { cwd: folder });
  const common = [
    "-addext",
    "basicConstraints=critical,CA:TRUE",
    "-addext",
    "keyUsage=critical,keyCertSign,digitalSignature",
  ];
  const selfSigned = ["req", "-x509", ...newKey, ...valid, "-subj", "/CN=raykeeper-cluster", ...common];
  await openssl(...selfSigned, "-keyout", key("authority"), "-out", authority);
  await openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key("service-accounts"));
  const one = async (name, subject, extensions) => {
    writeFileSync(join(folder, `${name}.ext`), extensions.join("\n"));
    const request = join(folder, `${name}.csr`);
    await openssl("req", "-new", ...newKey, "-subj", subject, "-keyout", key(name), "-out", request);
    const signer = [
      "-CA",
      authority,
      "-CAkey",
      key("authority"),
      "-CAcreateserial",
      "-CAserial",
      join(folder, `${name}.srl`),
    ];
    const signed = ["x509", "-req", "-in", request, ...signer, ...valid, "-extfile", join(folder, `${name}.ext`)];
    await openssl(...signed, "-out", certificate(name));
  };
  await Promise.all([
    ...Object.entries(SERVERS).map(([name, names]) =>
      one(name, `/CN=${name}`, [`subjectAltName=${names.join()}`, "extendedKeyUsage=serverAuth"]),
    ),
    ...Object.entries(CLIENTS).map(([name, [user, group]]) =>
      one(name, `${group ? `/O=${group}` : ""}/CN=${user}`, ["extendedKeyUsage=clientAuth"]),
    ),
  ]);
  for (const name of Object.keys(CLIENTS)) writeFileSync(kubeconfig(name), configOf(name), { mode: 0o600 });
}

/** Complete in itself, so that it can be copied. */
function configOf(name) {
  const data = (file) => readFileSync(file).toString("base64");
  const cluster = { server, "certificate-authority-data": data(authority) };
  const user = { "client-certificate-data": data(certificate(name)), "client-key-data": data(key(name)) };
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "raykeeper", cluster }],
    users: [{ name, user }],
    contexts: [{ name: "raykeeper", context: { cluster: "raykeeper", user: name } }],
    "current-context": "raykeeper",
  });
}
