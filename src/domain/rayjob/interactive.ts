/**
 * InteractiveMode: whoever uses the RayCluster submits the job himself, and says in `spec.jobId` under which id.
 *
 * Answers: which id is meant for this attempt.
 * May not: take an id that an earlier attempt had for this one's: it stands in spec until somebody writes another there,
 * and the job that had it is over.
 * Next: start.ts waits for it; run.ts judges the job by what Ray says, as every other.
 */
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import { fitsIntoURL } from "./names.ts";

export const isInteractive = ({ submissionMode }: AttemptRecord): boolean => submissionMode === "InteractiveMode";

/** The attempt that had this id before; the id is not this one's then. */
export const formerOf = ({ spec, status }: RayJob, record: AttemptRecord): AttemptRecord | undefined =>
  status?.attempts?.find(
    ({ number, jobId }) => number !== record.number && jobId !== undefined && jobId === spec.jobId,
  );

/** The record with the id that its user has told by now; without one it waits. Other attempts have theirs from the start. */
export function withToldId(job: RayJob, record: AttemptRecord): AttemptRecord {
  const { jobId } = job.spec;
  const isTold = jobId && fitsIntoURL(jobId) && !formerOf(job, record);
  return isInteractive(record) && !record.jobId && isTold ? { ...record, jobId } : record;
}
