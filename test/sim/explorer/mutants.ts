/**
 * Planted bugs, of the kinds that real operators had: the explorer must find each, or its alphabet is too small.
 *
 * A line each: where, what is changed, and in which lifecycles (and by which faults, where it would take long) it must
 * show. The text that is replaced must be in the file, so that a mutant cannot rot unnoticed.
 */
export interface Mutant {
  readonly name: string;
  /** Below src/. */
  readonly file: string;
  readonly replace: readonly (readonly [from: string, to: string])[];
  readonly in: readonly string[];
  /** Only these are tried; all when absent. */
  readonly faults?: readonly string[];
}

const job = (file: string) => `domain/rayjob/${file}.ts`;
const LEADER = ["deaf", "pause-leader", "pause-leader-shortly"];
const LAG = ["late-3", "late-40", "relist", "rival-late"];
const CRASH = ["crash-before", "crash-after"];
const SERVER = ["conflict", "500", "429", "timeout-done", "timeout-undone", "reset-done", "reset-undone", "late"];

export const mutants: readonly Mutant[] = [
  // Names, and who owns what bears them.
  {
    name: "a random name, looked for and then created",
    file: job("cluster"),
    replace: [
      [
        "name: record.rayClusterName,\n      namespace,",
        "generateName: `${record.rayClusterName}-`,\n      namespace,",
      ],
    ],
    in: ["success"],
  },
  {
    name: "a stranger adopted by its name",
    file: "machinery/perform.ts",
    replace: [['!== owner) return "stranger"', '!== owner) return "ours"']],
    in: ["success"],
    faults: ["exists-other"],
  },
  {
    name: "two messages of one condition written over each other for ever",
    file: job("run"),
    replace: [["provide({ ...pass, status: heard }, trouble", "provide({ ...pass, status: waiting }, trouble"]],
    in: ["success"],
    faults: ["exists-other"],
  },
  {
    name: "a submitter of an earlier attempt taken for ours",
    file: job("submitter"),
    replace: [["...attemptLabels(job, record),", ""]],
    in: ["retry", "success"],
    faults: ["evict-submitter", ...LAG],
  },
  {
    name: "a template that says of which attempt its Pod is",
    file: job("submitterPod"),
    replace: [["{ ...metadata?.labels, ...marks.labels }", "{ ...marks.labels, ...metadata?.labels }"]],
    in: ["own-template"],
  },
  {
    name: "children without an owner",
    file: job("cluster"),
    replace: [["ownerReferences: [ownedBy(job)],", "ownerReferences: [],"]],
    in: ["success", "delete-in-running"],
  },
  // Leaving an attempt.
  {
    name: "the attempt raised before it is cleaned up",
    file: job("retry"),
    replace: [["if (waiting) return waiting;", ""]],
    in: ["retry"],
  },
  {
    name: "a barrier on the RayCluster object alone",
    file: job("children"),
    replace: [
      ["return [...rayClusters, ...jobs, ...pods];", "return [...rayClusters];"],
      ['if (extent === "owners") return [owners];', "return [owners.slice(0, 2)];"],
    ],
    in: ["suspend-in-running"],
  },
  {
    name: "a barrier that takes a Pod in Terminating for gone",
    file: job("children"),
    replace: [
      [
        "return [...rayClusters, ...jobs, ...pods];",
        "return [...rayClusters, ...jobs, ...pods].filter((one) => !isLeaving(one));",
      ],
      ["!spent.has(metadata.uid))", "!spent.has(metadata.uid) && !metadata.deletionTimestamp)"],
    ],
    in: ["blocking-retry"],
  },
  {
    name: "a barrier on owners alone",
    file: job("retry"),
    replace: [
      ["const waiting = blocking ? atBarrier(observed, now)", "const waiting = false ? atBarrier(observed, now)"],
    ],
    in: ["blocking-retry"],
  },
  {
    name: "a time-out that counts while suspended",
    file: job("barrier"),
    replace: [["return stands ? undefined : start", "return start"]],
    in: ["blocking-suspended-for-longer-than-it-may-take"],
  },
  {
    name: "a time-out that begins the next attempt",
    file: job("barrier"),
    replace: [
      [
        'if (really.is === "left") return giveUp',
        'if (really.is === "left") return undefined; if (false) return giveUp',
      ],
    ],
    in: ["blocking-timeout"],
  },
  {
    name: "a second head within an attempt",
    file: "domain/raycluster/oneHead.ts",
    replace: [
      [
        "hasOneHead(cluster) && oneHeadUID(cluster) === undefined;",
        'hasOneHead(cluster) && (oneHeadUID(cluster) === undefined || cluster.status?.conditions?.some(({ reason }) => reason === "HeadPodLost") === true);',
      ],
    ],
    in: ["blocking-head-lost", "blocking-head-lost-http"],
  },
  {
    name: "a head that is not written down",
    file: "domain/raycluster/oneHead.ts",
    replace: [["(hasOneHead(cluster) ? heads[0]?.metadata.uid : undefined)", "heads[9]?.metadata.uid"]],
    in: ["blocking-retry"],
  },
  {
    name: "an edit that reaches the attempt under way",
    file: job("submission"),
    replace: [["return (text === undefined ? undefined : read(text)) ?? spec;", "void [text, read]; return spec;"]],
    in: ["success", "success-http"],
    faults: ["edit"],
  },
  {
    name: "Suspended said at once",
    file: job("suspend"),
    replace: [["  if (waiting) return waiting;\n  if (!record || !halted)", "  if (!record || !halted)"]],
    in: ["suspend-in-running"],
  },
  {
    name: "absence believed from the cache",
    file: job("absence"),
    replace: [
      [
        "const said = proof(observed, proofOfAbsence(observed, record, extent), spent);",
        "const said = { left: [] } as ReturnType<typeof proof>; void [proof, proofOfAbsence, spent];",
      ],
    ],
    in: ["suspend-in-running"],
    faults: ["late-40"],
  },
  {
    name: "release told while Pods are there",
    file: job("finish"),
    replace: [
      ["const waiting = unproven(found, now);", "const waiting = undefined as ReturnType<typeof unproven>;"],
      ['if (found.is === "left")', "if (false)"],
    ],
    in: ["success"],
  },
  {
    name: "one attempt too many",
    file: job("ending"),
    replace: [["failed <= (backoffLimit ?? 0) &&", "failed <= (backoffLimit ?? 0) + 1 &&"]],
    in: ["retries-exhausted"],
  },
  {
    name: "an attempt number skipped",
    file: job("records"),
    replace: [["known >= 0 ? known + 1", "known >= 0 ? known + 2"]],
    in: ["retry"],
  },
  {
    name: "a deadline that is retried",
    file: job("ending"),
    replace: [['["DeadlineExceeded", "JobStatusCheckTimeoutExceeded"]', "[]"]],
    in: ["deadline-in-running"],
  },
  // Memory.
  {
    name: "failures counted in memory",
    file: "wiring.ts",
    replace: [
      ["const refused = new Map", "const counts = new Map<string, number>();\n  const refused = new Map"],
      [
        "return decideRayJob(observed, now);",
        "const d = decideRayJob(observed, now); const f = d.status?.['failed'] as number | undefined; const u = observed.job.metadata.uid; if (f === undefined || f <= (observed.job.status?.failed ?? 0)) return d; const n = (counts.get(u) ?? 0) + 1; counts.set(u, n); return { ...d, status: { ...d.status, failed: n } };",
      ],
    ],
    in: ["retries-exhausted"],
    faults: [...CRASH, "conflict", "outage"],
  },
  {
    name: "submitted, known in memory only",
    file: job("start"),
    replace: [["submissionStartTime: record.submissionStartTime ?? toWire(now),", ""]],
    in: ["success"],
  },
  {
    name: "a journal that is written anew each time",
    file: job("learn"),
    replace: [["observedTime: pass.record.observedTime ?? toWire(now),", "observedTime: toWire(now),"]],
    in: ["success", "submitter-lost-late"],
    faults: [...CRASH, "outage"],
  },
  // Writes.
  {
    name: "a blind status write",
    file: "machinery/perform.ts",
    replace: [["const body = { metadata: { resourceVersion }, status };", "const body = { status };"]],
    in: ["success"],
  },
  {
    name: "a delete without UID",
    file: "machinery/perform.ts",
    replace: [["{ uid, propagation, gracePeriodSeconds }", "{ propagation, gracePeriodSeconds }"]],
    in: ["success"],
  },
  {
    name: "an event before the write it tells of",
    file: "machinery/perform.ts",
    replace: [
      [
        "  let status: Outcome",
        "  for (const event of decision.events) tools.events.record(primary, event);\n  let status: Outcome",
      ],
    ],
    in: ["success"],
    faults: [...CRASH, ...SERVER],
  },
  {
    name: "a terminal status judged again",
    file: job("decide"),
    replace: [["Failed: finish,", "Failed: run,"]],
    in: ["failure", "head-lost-for-good"],
  },
  {
    name: "a terminal phase beside a running job",
    file: job("ending"),
    replace: [["    jobStatus,\n    reason,\n    message,\n    failed,", "    reason,\n    message,\n    failed,"]],
    in: ["head-lost-for-good"],
  },
  {
    name: "a write that failed is not tried again",
    file: "machinery/controller.ts",
    replace: [["const delay = this.#queue.retry(key, Math.max(...asked));", "const delay = 0;"]],
    in: ["success", "success-http", "retry"],
    faults: SERVER,
  },
  {
    name: "a change while a key is worked on is missed",
    file: "machinery/queue.ts",
    replace: [["if (this.#again.delete(key)) this.#makeReady(key);", "this.#again.delete(key);"]],
    in: ["success", "retry"],
  },
  {
    name: "a failed pass is not repeated",
    file: "machinery/controller.ts",
    replace: [["const delay = this.#queue.retry(key, atLeast);", "const delay = atLeast;"]],
    in: ["success", "retry", "suspend-in-running"],
    faults: ["500", "reset", "429"],
  },
  // The cache.
  {
    name: "a watch that breaks for good",
    file: "machinery/kube/informer.ts",
    replace: [["delay = Math.max(asked ?? 0, this.#longer(delay));", "return;"]],
    in: ["success"],
    faults: ["broken"],
  },
  {
    name: "a forgotten past is not listed again",
    file: "machinery/kube/informer.ts",
    replace: [["          version = undefined;\n          continue;", "          delay = 1000;\n          continue;"]],
    in: ["success"],
    faults: ["relist"],
  },
  {
    name: "objects that went unseen stay in the cache",
    file: "machinery/kube/store.ts",
    replace: [["      this.#remove(key, old);\n      changes.push({ old });", ""]],
    in: ["success", "suspend-in-running", "retry"],
    faults: ["relist"],
  },
  {
    name: "no barrier: own writes are not waited for",
    file: "machinery/controller.ts",
    replace: [['if (fresh !== "fresh") {', 'if (fresh !== "fresh" && name === "nobody") {']],
    in: ["success", "retry", "success-http"],
    faults: LAG,
  },
  {
    name: "a RayCluster made for a RayJob that is elsewhere by now",
    file: job("start"),
    replace: [["if (!isStill(observed, jobs[0]) || clusters.length > 0) {", "if (clusters.length > 0) {"]],
    in: ["suspend-in-initializing", "delete-in-initializing", "success", "cluster-deleted-early"],
    faults: [...LAG, "suspend", "delete"],
  },
  // Ray.
  {
    name: "the verdict from the submitter",
    file: job("verdict"),
    replace: [
      [
        '  { row: "h", when: (s) => s.otherSession,',
        '  { row: "f", when: (s) => s.submitter.is === "failed", give: () => failed("f", "SubmissionFailed", "SubmissionFailed", "the submitter failed") },\n  { row: "h", when: (s) => s.otherSession,',
      ],
    ],
    in: ["submitter-lost-late"],
  },
  {
    name: "an answer older than the submission",
    file: job("verdict"),
    replace: [["const outdated = submit !== undefined &&", "const outdated = false &&"]],
    in: ["success-http", "retry-http"],
  },
  {
    name: "a silent dashboard taken for a lost head",
    file: job("verdict"),
    replace: [["when: (s) => s.headLost && s.silent && !s.faultTolerant,", "when: (s) => s.silent,"]],
    in: ["success"],
    faults: ["503", "hang", "refused"],
  },
  {
    name: "a dashboard's error taken for not found",
    file: "ray/dashboard.ts",
    replace: [
      [
        'if (!isSuccess(response)) return { kind: "none", error: describe(response) };\n    const info',
        'if (!isSuccess(response)) return { kind: "notFound" };\n    const info',
      ],
    ],
    in: ["success", "success-http"],
    faults: ["503"],
  },
  {
    name: "a stop at the deadline that is never sent",
    file: job("deadlines"),
    replace: [["if (target && mayStop(ray)) effects.push", "if (false) effects.push"]],
    in: ["deadline-in-running"],
  },
  {
    name: "a submitter made again and again",
    file: job("provide"),
    replace: [
      ["if (record.observedTime !== undefined && !mayFollowAgain(statusOf(observed.job), record)) return {};", ""],
    ],
    in: ["submitter-deleted-twice"],
  },
  {
    name: "a timer judged before Ray is asked",
    file: job("run"),
    replace: [
      [
        "if (deadline && mayNotice(deadline, observed.ray.answer, askable, now)) return notice(status, record, deadline, now);",
        "if (deadline && now >= deadline.at) return failWith(observed, status, record, deadline.failure, now);",
      ],
    ],
    in: ["deadline-met"],
    faults: ["outage"],
  },
  {
    name: "a second POST after an unknown outcome",
    file: "ray/commands.ts",
    replace: [
      [
        "return dashboard.submit(target, command.request, command.session);",
        'return dashboard.submit(target, command.request, command.session).then((told) => told.result === "unknown" ? dashboard.submit(target, command.request, command.session) : told);',
      ],
    ],
    in: ["deadline-in-running-http"],
    faults: ["timeout-done"],
  },
  {
    name: "a stop given up before Ray was told and asked",
    file: job("deadlines"),
    replace: [["return !target || (stop?.finishedAt", "return true || (stop?.finishedAt"]],
    in: ["deadline-in-running"],
    faults: ["outage"],
  },
  {
    name: "a release told from the cache",
    file: job("finish"),
    replace: [
      [
        '  const waiting = unproven(found, now);\n  if (waiting) return waiting;\n  if (found.is === "left") {',
        '  if (found.is === "left") {',
      ],
    ],
    in: ["head-lost-for-good"],
    faults: ["late-40"],
  },
  {
    name: "a leftover adopted by its name",
    file: job("children"),
    replace: [
      ['if (isLeaving(object)) return "leftover";', ""],
      ['label === String(attempt) ? "ours" : "leftover"', 'true ? "ours" : "leftover"'],
      ["LABEL.executionAttempt]) < record.number;", "LABEL.executionAttempt]) < 0;"],
    ],
    in: ["retry"],
    faults: ["late-submitter"],
  },
  {
    name: "what comes late stays while the RayJob is suspended",
    file: job("suspend"),
    replace: [
      [
        'cleanUp(remains(observed, currentRecord(observed)), "the RayJob is suspended")',
        'cleanUp(remains(observed, currentRecord(observed)), "").slice(9)',
      ],
    ],
    in: ["suspend-for-good"],
    faults: ["late-submitter", "late-cluster"],
  },
  // Leaders.
  {
    name: "a leader that writes on after its lease is lost",
    file: "machinery/leader.ts",
    replace: [
      [
        "return !this.#over && this.#covered !== undefined && now >= this.#covered.from && now < this.#covered.until;",
        "return this.#covered !== undefined || now < 0;",
      ],
    ],
    in: ["elected-success", "elected-head-lost"],
    faults: LEADER,
  },
  {
    name: "a lease that is trusted to its last moment",
    file: "machinery/leader.ts",
    replace: [["const until = from + leaseDuration - writeTimeout;", "const until = from + leaseDuration;"]],
    in: ["elected-success", "elected-head-lost"],
    faults: LEADER,
  },
  {
    name: "a standby that takes over before the lease has run out",
    file: "machinery/leader.ts",
    replace: [["if (!ours && this.holder && !this.#expired) return false;", ""]],
    in: ["elected-success"],
  },
  // The sidecar.
  {
    name: "the verdict from the sidecar's exit",
    file: job("verdict"),
    replace: [
      [
        '  { row: "h", when: (s) => s.otherSession,',
        '  { row: "f", when: (s) => s.submitter.is === "failed" && s.submitter.why === "ContainerExited", give: () => failed("f", "SubmissionFailed", "SubmissionFailed", "the sidecar failed") },\n  { row: "h", when: (s) => s.otherSession,',
      ],
    ],
    in: ["sidecar-killed-mid-run"],
  },
  {
    name: "a sidecar's exit taken for a lost head",
    file: job("cluster"),
    replace: [
      [
        "const name = pod.spec?.containers?.[0]?.name;\n  return pod.status?",
        "const name = pod.spec?.containers?.at(-1)?.name;\n  return pod.status?",
      ],
    ],
    in: ["sidecar-killed-mid-run"],
  },
  {
    name: "a restart limit that holds for a job that Ray has",
    file: job("verdict"),
    replace: [
      [
        '  { row: "h", when: (s) => s.otherSession,',
        '  { row: "f", when: (s) => s.submitter.is === "failed" && s.submitter.why === "RestartLimit", give: () => failed("f", "SubmissionFailed", "SubmissionFailed", "too many restarts") },\n  { row: "h", when: (s) => s.otherSession,',
      ],
    ],
    in: ["sidecar-killed-too-often"],
  },
  {
    name: "a sidecar's head made before its submission is journalled",
    file: "domain/raycluster/journalFirst.ts",
    replace: [["!isCurrent || record.submissionStartTime === undefined ||", "!isCurrent ||"]],
    in: ["sidecar-success"],
  },
  {
    name: "a sidecar's head made anew, whatever there was before",
    file: "domain/raycluster/formerHead.ts",
    replace: [["if (!submits ||", "if (true || !submits ||"]],
    in: ["sidecar-head-vanishes-unseen"],
  },
  // The user submits.
  {
    name: "the id of an earlier attempt taken for this one's",
    file: job("interactive"),
    replace: [["fitsIntoURL(jobId) && !formerOf(job, record)", "fitsIntoURL(jobId)"]],
    in: ["interactive-suspend"],
  },
  {
    name: "a user's submission that nobody stops",
    file: job("start"),
    replace: [["    jobId: told.jobId,\n    headPodUID", "    headPodUID"]],
    in: ["interactive-delete"],
  },
  // Kueue.
  {
    name: "suspended on what Ray had said before",
    file: job("run"),
    replace: [['observed.ray.answer?.occasion !== "suspension"', "!observed.ray.answer"]],
    in: ["kueue-preempted-as-it-ends"],
  },
  {
    name: "quota given back while a Pod is in Terminating",
    file: job("suspend"),
    replace: [
      ['awaitAbsence(observed, "everything", now, "Suspended")', 'awaitAbsence(observed, "owners", now, "Suspended")'],
    ],
    in: ["kueue-preempted"],
  },
  {
    name: "an attempt made from the templates of an earlier admission",
    file: job("start"),
    replace: [
      ["const PATROL = seconds(2);", "const PATROL = seconds(2);\nconst first = new Map();"],
      [
        "effects: [createCluster(job, record, observed.settings)],",
        "effects: [createCluster({ ...job, spec: first.get(job.metadata.uid) ?? first.set(job.metadata.uid, job.spec).get(job.metadata.uid) }, record, observed.settings)],",
      ],
    ],
    in: ["kueue-preempted-http"],
  },
  {
    name: "a submitter that runs where it likes",
    file: job("submitterPod"),
    replace: [["    ...template?.spec,\n", "    ...template?.spec,\n    nodeSelector: undefined,\n"]],
    in: ["kueue-admitted"],
  },
  {
    name: "a failure that is retried, told as the end",
    file: job("decide"),
    replace: [
      [
        'const phase = phases[statusOf(job).jobDeploymentStatus ?? ""];',
        'const again = statusOf(job).conditions?.some(({ type, status }) => type === "Retrying" && status === "True");\n  const phase = phases[again ? "Retrying" : (statusOf(job).jobDeploymentStatus ?? "")];',
      ],
      [
        "const next = revise(status, { observedGeneration: job.metadata.generation });",
        'const told = status.jobDeploymentStatus === "Retrying" ? { jobDeploymentStatus: "Failed" } : {};\n  const next = revise(status, { ...told, observedGeneration: job.metadata.generation });',
      ],
    ],
    in: ["kueue-retry"],
  },
  {
    name: "a default written into the spec",
    file: job("start"),
    replace: [
      [
        "patch: { metadata: { finalizers: [...finalizers, FINALIZER.rayJob] } },",
        'patch: { metadata: { finalizers: [...finalizers, FINALIZER.rayJob] }, spec: { submissionMode: job.spec.submissionMode ?? "K8sJobMode" } },',
      ],
    ],
    in: ["kueue-admitted"],
  },
  {
    name: "rules that keep Pods when the quota is gone",
    file: job("policy"),
    replace: [["(endOf(status) ?? now) + seconds(after)", "(endOf(status) ?? now) + seconds(after + 1e9)"]],
    in: ["kueue-rules"],
  },
  // Deletion.
  {
    name: "the finalizer dropped early",
    file: job("deletion"),
    replace: [["if (!target || !mayRun)", "if (true)"]],
    in: ["delete-in-running"],
  },
  {
    name: "no finalizer",
    file: job("start"),
    replace: [["if (!job.metadata.finalizers?.includes(FINALIZER.rayJob)) return addFinalizer(observed);", ""]],
    in: ["delete-in-running"],
  },
  {
    name: "a stage that comes before its time",
    file: job("policy"),
    replace: [["(endOf(status) ?? now) + seconds(after)", "(endOf(status) ?? now) + after"]],
    in: ["rules-in-stages"],
  },
  {
    name: "a rule that is obeyed whatever the outcome",
    file: job("policy"),
    replace: [
      [
        "(condition.jobStatus !== undefined && condition.jobStatus === outcome.jobStatus)",
        "condition.jobStatus !== undefined",
      ],
    ],
    in: ["rules-match-nothing"],
  },
  {
    name: "a stage that nobody wakes up for",
    file: job("finish"),
    replace: [["wakeAt: earliest(released.wakeAt, nextAt)", "wakeAt: released.wakeAt"]],
    in: ["rules-in-stages"],
  },
  {
    name: "holdings that are told once and for all",
    file: job("finish"),
    replace: [
      ["record && holdingsNews(status, observed, record, now)", "record && [holdingsNews] ? undefined : undefined"],
    ],
    in: ["rules-keep-the-head"],
  },
  // A cluster that somebody else made.
  {
    name: "a stop before the submitter is gone",
    file: job("halt"),
    replace: [["if (stop === undefined && now < last) {", "if (false) {"]],
    in: ["selector-delete-mid-run"],
  },
  {
    name: "a finalizer that waits for Ray's word as long as it takes",
    file: job("halt"),
    replace: [["if (bound !== undefined && now >= bound)", "if (false)"]],
    in: ["selector-delete-mid-run"],
    faults: ["dashboard-gone"],
  },
  {
    name: "somebody else's job taken over",
    file: job("start"),
    replace: [["if (taken) return taken;", ""]],
    in: ["selector-recreated-with-its-id"],
  },
  {
    name: "a selected cluster deleted at the end",
    file: job("finish"),
    replace: [
      [
        "disposalOf(job.spec, status, observed.settings, isSelected(record))",
        "disposalOf(job.spec, status, observed.settings, false)",
      ],
      ["disposals[due.policy](some)", "disposals[due.policy]({ ...some, rayClusters: observed.rayClusters })"],
    ],
    in: ["selector-success"],
  },
  {
    name: "the end of an earlier attempt's job taken for this one's",
    file: job("verdict"),
    replace: [["const isAboutIt =", "const isAboutIt = true ||"]],
    in: ["selector-suspend-resume"],
    faults: ["rival"],
  },
  {
    name: "a suspension that leaves the job to the cluster",
    file: job("suspend"),
    replace: [['if (halted?.is === "under way") return halted.decision;', ""]],
    in: ["selector-suspend-resume"],
  },
];
