/**
 * What reaches Ray is what the manifest says, byte for byte, whoever submits it. Ray's own job server is the witness.
 */
import { afterAll, describe, expect, it } from "vitest";
import { rayJob, useCluster } from "./cluster.ts";

const cluster = useCluster();

const ODD =
  '; && || $HOME ${HOME} $(HOME) $$(HOME) $$ `id` \'single\' "double" {"a": [1]} größer ✓ 日本 % ! * ~ <> | # \\n \\';
const entrypoint = [
  "echo \"one; two\" && echo 'three && four'; echo $HOME $(HOME) $$ `echo five`",
  'echo "größer ✓ 日本"',
  "# a comment with ' and \" and $(HOME)",
  "echo end \\",
].join("\n");
const metadata = { odd: ODD, lines: "one\ntwo\n\n", "key-with.dots": "  spaces  " };
const variables = { ODD, LINES: "one\ntwo\n\n" };
// JSON is YAML, and leaves no doubt about what the strings are.
const runtimeEnvYAML = JSON.stringify({ env_vars: variables });

const names: string[] = [];
afterAll(() => Promise.all(names.map((name) => cluster.remove(name))));

describe.each(["K8sJobMode", "HTTPMode", "SidecarMode"] as const)("in %s", (submissionMode) => {
  it("entrypoint, metadata and runtime environment reach Ray unchanged", async () => {
    const name = `bytes-${submissionMode.toLowerCase()}`;
    names.push(name);
    // The cluster stays, so that Ray can be asked afterwards.
    await cluster.apply(
      rayJob(name, { submissionMode, entrypoint, metadata, runtimeEnvYAML, shutdownAfterJobFinishes: false }),
    );
    const job = await cluster.ended(name);
    expect(job.status?.message).toBeDefined();
    const listed = (await cluster.ray(job, "/api/jobs/")) as Record<string, unknown>[];
    const ours = listed.filter(({ submission_id }) => submission_id === job.status?.jobId);
    expect(ours[0]).toMatchObject({ entrypoint, metadata, runtime_env: { env_vars: variables } });
    expect(job.status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
    expect(await cluster.rayTells(job)).toEqual([`${job.status?.jobId} SUCCEEDED`]);
    expect(await cluster.kubectlTells(job)).toBe("SUCCEEDED Complete");
  });
});
