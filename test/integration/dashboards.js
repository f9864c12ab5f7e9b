// Loaded into the operator's process by `--import`: leads connections to the dashboards' names, which only a cluster's DNS
// knows, to the fake Ray on the loopback. All else of the way there is the operator's own: its HTTP, its time-outs.
// The name stays in the Host header, which is how the fake knows who is meant.
import net from "node:net";

const port = Number(process.env.RAYKEEPER_TEST_DASHBOARDS);
const suffix = `.svc.${process.env.CLUSTER_DOMAIN}`;
const connect = net.connect;
net.connect = (options, ...rest) =>
  connect(options?.host?.endsWith(suffix) ? { ...options, host: "127.0.0.1", port } : options, ...rest);
