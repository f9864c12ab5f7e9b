// `node hack/image/build.js`: the container image as an OCI archive, made without a container engine. See main.ts.
import { spawnSync } from "node:child_process";
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { runWithProjectNode } from "../projectNode.js";

/** Why there can be no image on this machine; undefined when there can. */
export function whyNot() {
  const missing = ["apt-get", "dpkg-deb", "tar"].filter((program) => spawnSync(program, ["--version"]).error);
  return missing.length > 0
    ? `building the container image takes ${missing.join(" and ")}, of Debian or Ubuntu`
    : undefined;
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  runWithProjectNode(new URL("main.ts", import.meta.url));
}
