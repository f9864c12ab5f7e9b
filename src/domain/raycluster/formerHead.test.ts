// A sidecar's head that is gone before its UID was written down, and what is left of it: what was said about it.
import { describe, expect, it } from "vitest";
import type { Event } from "../../api/kubernetes.ts";
import { ANNOTATION, LABEL } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayJob } from "../../api/rayjob.ts";
import { type Decision, type LiveQuestion, questionKey } from "../decision.ts";
import { seconds, toWire } from "../time.ts";
import { decideRayCluster } from "./decide.ts";
import { NOON, rayCluster, World } from "./testing.ts";

const HEAD = "demo-head";
const QUESTION: LiveQuestion = { ask: "said", kind: "Event", namespace: "ns1", pod: HEAD };
const scheduled = (uid: string, kind = "Pod"): Event =>
  ({
    kind: "Event",
    metadata: { name: `${HEAD}.1` },
    reason: "Scheduled",
    regarding: { kind, name: HEAD, uid },
  }) as Event;

/** So long after the RayJob's journal said that a head may be made, and with these events about one. */
function following(milliseconds: number, said: readonly Event[], mode = "SidecarMode") {
  const cluster = rayCluster(
    {},
    {
      annotations: { [ANNOTATION.oneHead]: "true" },
      labels: { [LABEL.jobSubmissionMode]: mode, [LABEL.rayJobUID]: "job" },
    },
  );
  const world = new World(cluster);
  const attempts = [{ number: 0, rayClusterName: "demo", submissionStartTime: toWire(NOON) }];
  const rayJob = { metadata: { name: "demo", uid: "job" }, status: { attempts } } as unknown as Stored<RayJob>;
  const asked: LiveQuestion[] = [];
  const live = new Map<string, readonly KubeObject[]>();
  for (;;) {
    const decision: Decision = decideRayCluster({ ...world.observed(), rayJob, live }, NOON + milliseconds);
    if (!decision.ask) return { decision, asked };
    asked.push(...decision.ask);
    for (const question of decision.ask) {
      const answer = { get: [cluster], list: [], warnings: [], said }[question.ask];
      live.set(questionKey(question), answer);
    }
  }
}

const makesHead = ({ effects }: Decision): boolean =>
  effects.some((effect) => effect.do === "create" && (effect.object as KubeObject).kind === "Pod");

describe("the first head of a sidecar's cluster", () => {
  it("is made at once when the journal says so, and nobody is asked for events", () => {
    const { decision, asked } = following(seconds(1), [scheduled("gone")]);
    expect(makesHead(decision)).toBe(true);
    expect(asked).not.toContainEqual(QUESTION);
  });

  it("is made later, too, when nothing was ever said about one", () => {
    const { decision, asked } = following(seconds(60), []);
    expect(asked).toContainEqual(QUESTION);
    expect(makesHead(decision)).toBe(true);
  });

  it("that was there and is gone is written down, and none is made after it", () => {
    const { decision } = following(seconds(60), [scheduled("gone")]);
    expect(decision.effects).toEqual([]);
    expect(decision.status).toMatchObject({ head: { podUID: "gone" } });
  });

  it("is not taken for something else of its name", () => {
    expect(makesHead(following(seconds(60), [scheduled("other", "RayCluster")]).decision)).toBe(true);
  });

  it("is made though a policy has told whom it refused", () => {
    const refused = { ...scheduled("refused"), reason: "FailedAdmission", reportingController: "gatekeeper-webhook" };
    expect(makesHead(following(seconds(60), [refused]).decision)).toBe(true);
    const pulled = { ...scheduled("gone"), reason: "Pulled", reportingController: "kubelet" };
    expect(following(seconds(60), [refused, pulled]).decision.status).toMatchObject({ head: { podUID: "gone" } });
  });

  it("of a job that is handed over later has had nothing to do, and is made anew", () => {
    const { decision, asked } = following(seconds(60), [scheduled("gone")], "K8sJobMode");
    expect(makesHead(decision)).toBe(true);
    expect(asked).not.toContainEqual(QUESTION);
  });
});
