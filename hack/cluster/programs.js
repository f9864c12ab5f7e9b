// What runs in the cluster, in the order in which it starts, and how each is set up. The README tells why so.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtOf } from "../kubernetes/build.js";
import { authority, certificate, key, kubeconfig } from "./certificates.js";
import { NODE, network, paths, RUN, STATE } from "./paths.js";

const settings = join(RUN, "settings");
const file = (name) => join(settings, name);

const controlPlane = (name) => join(builtOf("control-plane"), name);
const node = (name) => join(builtOf("node"), name);

/** Command lines by name. */
export const commands = {
  etcd: [
    controlPlane("etcd"),
    `--data-dir=${join(STATE, "etcd")}`,
    // Nobody needs the data after a crash of the machine.
    "--unsafe-no-fsync",
    "--listen-client-urls=http://127.0.0.1:2379",
    "--advertise-client-urls=http://127.0.0.1:2379",
    "--listen-peer-urls=http://127.0.0.1:2380",
    "--initial-advertise-peer-urls=http://127.0.0.1:2380",
    "--initial-cluster=default=http://127.0.0.1:2380",
  ],
  containerd: ["containerd", `--config=${file("containerd.toml")}`],
  "kube-apiserver": [
    controlPlane("kube-apiserver"),
    "--etcd-servers=http://127.0.0.1:2379",
    `--advertise-address=${network.node}`,
    "--bind-address=0.0.0.0",
    "--secure-port=6443",
    "--authorization-mode=Node,RBAC",
    "--enable-admission-plugins=NodeRestriction",
    "--allow-privileged=true",
    `--service-cluster-ip-range=${network.services}`,
    `--client-ca-file=${authority}`,
    `--tls-cert-file=${certificate("apiserver")}`,
    `--tls-private-key-file=${key("apiserver")}`,
    `--kubelet-certificate-authority=${authority}`,
    `--kubelet-client-certificate=${certificate("apiserver-to-kubelet")}`,
    `--kubelet-client-key=${key("apiserver-to-kubelet")}`,
    "--kubelet-preferred-address-types=InternalIP",
    `--service-account-key-file=${key("service-accounts")}`,
    `--service-account-signing-key-file=${key("service-accounts")}`,
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    `--requestheader-client-ca-file=${authority}`,
    "--requestheader-allowed-names=front-proxy-client",
    "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    "--requestheader-group-headers=X-Remote-Group",
    "--requestheader-username-headers=X-Remote-User",
    `--proxy-client-cert-file=${certificate("front-proxy")}`,
    `--proxy-client-key-file=${key("front-proxy")}`,
    `--audit-policy-file=${file("audit.json")}`,
    `--audit-log-path=${paths.auditLog}`,
  ],
  "kube-controller-manager": [
    controlPlane("kube-controller-manager"),
    `--kubeconfig=${kubeconfig("kube-controller-manager")}`,
    "--leader-elect=false",
    "--use-service-account-credentials=true",
    `--service-account-private-key-file=${key("service-accounts")}`,
    `--root-ca-file=${authority}`,
    `--cluster-signing-cert-file=${authority}`,
    `--cluster-signing-key-file=${key("authority")}`,
  ],
  "kube-scheduler": [node("kube-scheduler"), `--kubeconfig=${kubeconfig("kube-scheduler")}`, "--leader-elect=false"],
  kubelet: [
    node("kubelet"),
    `--config=${file("kubelet.json")}`,
    `--kubeconfig=${kubeconfig("kubelet")}`,
    `--root-dir=${join(STATE, "kubelet")}`,
    `--hostname-override=${NODE}`,
    `--node-ip=${network.node}`,
  ],
  "kube-proxy": [node("kube-proxy"), `--config=${file("kube-proxy.json")}`],
  coredns: [node("coredns"), "-conf", file("Corefile")],
};

/** Writes what the programs read when they start. */
export function writeSettings() {
  for (const folder of [settings, join(settings, "cni")]) mkdirSync(folder, { recursive: true });
  const write = (name, value) =>
    writeFileSync(file(name), typeof value === "string" ? value : JSON.stringify(value, undefined, 2));
  write("audit.json", {
    apiVersion: "audit.k8s.io/v1",
    kind: "Policy",
    omitStages: ["RequestReceived"],
    rules: [{ level: "Metadata" }],
  });
  write("containerd.toml", containerd());
  write("cni/pods.conflist", {
    cniVersion: "0.4.0",
    name: "pods",
    plugins: [
      // A cable for each Pod, no bridge: a Service's answer to a Pod on the same node comes back the way it went.
      {
        type: "ptp",
        mtu: Number(readFileSync(`/sys/class/net/${network.device}/mtu`, "utf8")),
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: network.pods }]],
          routes: [{ dst: "0.0.0.0/0" }],
          dataDir: join(STATE, "addresses"),
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });
  write("kubelet.json", {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: authority } },
    authorization: { mode: "Webhook" },
    tlsCertFile: certificate("kubelet-server"),
    tlsPrivateKeyFile: key("kubelet-server"),
    containerRuntimeEndpoint: `unix://${paths.containerdSocket}`,
    clusterDNS: [network.node],
    clusterDomain: "cluster.local",
    resolvConf: file("resolv.conf"),
    cgroupDriver: "cgroupfs",
    cgroupRoot: "/raykeeper-cluster",
    failCgroupV1: false,
    failSwapOn: false,
    // The disk is the machine's, and how full it is none of the cluster's business.
    evictionHard: {
      "memory.available": "0%",
      "nodefs.available": "0%",
      "nodefs.inodesFree": "0%",
      "imagefs.available": "0%",
    },
    imageGCHighThresholdPercent: 100,
    podLogsDir: join(STATE, "pod-logs"),
    volumePluginDir: join(STATE, "volume-plugins"),
  });
  write("kube-proxy.json", {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "iptables",
    hostnameOverride: NODE,
    clientConnection: { kubeconfig: kubeconfig("kube-proxy") },
    clusterCIDR: network.pods,
    // Limits of the whole machine, not of this network: leave them.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  });
  const servers = nameservers();
  write("resolv.conf", servers.map((server) => `nameserver ${server}\n`).join(""));
  write(
    "Corefile",
    `.:53 {
  bind ${network.node}
  errors
  ready ${network.node}:8181
  kubernetes cluster.local in-addr.arpa {
    kubeconfig ${kubeconfig("coredns")}
    ttl 5
  }
  ${servers.length > 0 ? `forward . ${file("resolv.conf")}` : ""}
  cache 5
}
`,
  );
}

/** The host's, save for those that only the host itself can reach. */
function nameservers() {
  const listed = (path) =>
    [...readFileSync(path, "utf8").matchAll(/^nameserver\s+(\S+)/gm)].map(([, address]) => address);
  const candidates = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"].filter((path) => existsSync(path));
  for (const path of candidates) {
    const reachable = listed(path).filter((address) => !/^127\.|^::1$/.test(address));
    if (reachable.length > 0) return reachable.slice(0, 3);
  }
  return [];
}

/** What CoreDNS may read. */
export const DNS_RIGHTS = [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "system:coredns" },
    rules: [
      { apiGroups: [""], resources: ["endpoints", "services", "pods", "namespaces"], verbs: ["list", "watch"] },
      { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list", "watch"] },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "system:coredns" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:coredns" },
    subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "system:coredns" }],
  },
];

export const PAUSE = "docker.io/raykeeper/pause:1";

function containerd() {
  return `version = 2
root = "${join(STATE, "containerd")}"
state = "${join(RUN, "containerd")}"
# Of other snapshotters and of no use here; each would complain.
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs", "io.containerd.tracing.processor.v1.otlp",
]

[grpc]
  address = "${paths.containerdSocket}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  # Without CAP_SYS_RESOURCE, as in many a virtual machine, nobody may lower a score, and each sandbox would fail.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${["/usr/lib/cni", "/opt/cni/bin"].find((folder) => existsSync(join(folder, "ptp"))) ?? "/usr/lib/cni"}"
    conf_dir = "${join(settings, "cni")}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
        Root = "${join(RUN, "runc")}"
`;
}
