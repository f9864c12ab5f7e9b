/** What somebody asked the API server of the one-node cluster for, by its own audit log. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { paths } from "../../hack/cluster/paths.js";

export interface Audited {
  readonly stage: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string };
  readonly objectRef?: {
    readonly resource?: string;
    readonly apiGroup?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  /** By the API server's clock. */
  readonly requestReceivedTimestamp: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** All since a moment, rotated files included. */
export function audited(username: string, since: number): Audited[] {
  const stem = basename(paths.auditLog, ".log");
  return readdirSync(dirname(paths.auditLog))
    .filter((name) => name.startsWith(stem))
    .flatMap((name) => readFileSync(join(dirname(paths.auditLog), name), "utf8").split("\n"))
    .filter((line) => line.includes(username) && line.endsWith("}"))
    .map((line) => JSON.parse(line) as Audited)
    .filter(({ user, requestReceivedTimestamp: at }) => user.username === username && Date.parse(at) >= since);
}
