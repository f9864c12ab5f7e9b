/**
 * What the image has in place of local.ts and embedded.ts: the embedded cluster runs Pods as processes beside the
 * program's own files, which the image does not have. hack/image/bundle.ts puts it there.
 */
import type * as Embedded from "./embedded.ts";
import { CannotRun } from "./failure.ts";
import type * as Local from "./local.ts";

function notHere(): never {
  throw new CannotRun(
    "the embedded cluster is not part of the image",
    "Run this command from a clone of the project, or name a real cluster (--kubeconfig, --context).",
  );
}

export const embedded: typeof Embedded.embedded = async () => notHere();
export const up: typeof Local.up = async () => notHere();
export const down: typeof Local.down = async () => notHere();
export const status: typeof Local.status = async () => notHere();
export const kubeconfigOfLocal: typeof Local.kubeconfigOfLocal = () => notHere();
