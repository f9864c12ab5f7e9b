// When the first head of a sidecar's cluster may be made: by the RayJob's journal.
import { expect, it } from "vitest";
import { LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import { defaultSettings } from "../settings.ts";
import { waitsForJournal } from "./journalFirst.ts";

const BEGUN = "2026-01-01T00:00:00Z";

function waits(record: Partial<AttemptRecord> | undefined, labels: Record<string, string> = {}, uid = "job") {
  const all = { [LABEL.jobSubmissionMode]: "SidecarMode", [LABEL.rayJobUID]: "job", ...labels };
  const cluster = { metadata: { name: "demo-a", uid: "c", resourceVersion: "1", labels: all }, spec: {} };
  const attempts = record && [{ number: 0, rayClusterName: "demo-a", ...record }];
  const rayJob = { metadata: { name: "demo", uid, resourceVersion: "1" }, status: { attempts } };
  return waitsForJournal({
    cluster: cluster as unknown as Stored<RayCluster>,
    rayJob: rayJob as unknown as Stored<RayJob>,
    pods: [],
    services: [],
    settings: defaultSettings,
    live: new Map(),
  });
}

it.each([
  ["is held back while the journal is silent", true, waits({})],
  ["is made when the journal says that the submission begins", false, waits({ submissionStartTime: BEGUN })],
  [
    "is not made again when the RayJob knows one that the cluster has not written down",
    true,
    waits({ submissionStartTime: BEGUN, headPodUID: "head" }),
  ],
  ["is held back when its attempt has ended", true, waits({ submissionStartTime: BEGUN, endTime: BEGUN })],
  [
    "is held back when another attempt is under way",
    true,
    waits({ submissionStartTime: BEGUN, rayClusterName: "demo-b" }),
  ],
  ["is held back when its RayJob is gone and has a namesake", true, waits({ submissionStartTime: BEGUN }, {}, "other")],
  ["is held back while no attempt is known", true, waits(undefined)],
  ["of another mode is nobody's to hold back", false, waits({}, { [LABEL.jobSubmissionMode]: "K8sJobMode" })],
])("the first head of a cluster %s", (_, expected, held) => expect(held).toBe(expected));
