import { describe, expect, it } from "vitest";
import { Dashboard } from "./dashboard.ts";
import { type RayRequest, type RayResponse, RayTransportError } from "./transport.ts";

const at = { dashboard: "raysubmit-head-svc.team-a.svc.cluster.local:8265" };

/** A dashboard whose answers are given by path; a path without one gets 404 as aiohttp says it. */
function dashboard(answers: Record<string, RayResponse | Error>, mayAct = () => true) {
  const sent: RayRequest[] = [];
  const transport = {
    async request(request: RayRequest) {
      sent.push(request);
      const answer = answers[`${request.method} ${request.path}`] ?? { status: 404, body: "404: Not Found" };
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  return { sent, dashboard: new Dashboard({ transport, askTimeout: 2000, commandTimeout: 10_000, mayAct }) };
}

const ok = (value: unknown): RayResponse => ({ status: 200, body: JSON.stringify(value) });

describe("asking for a job", () => {
  it("reads Ray's job object, its nulls included", async () => {
    const { dashboard: d } = dashboard({
      "GET /api/jobs/job-1": ok({
        submission_id: "job-1",
        status: "RUNNING",
        message: "Job is currently running.",
        start_time: 1767225600123,
        end_time: null,
        driver_node_id: "ab12",
      }),
    });
    expect(await d.job(at, "job-1")).toEqual({
      kind: "known",
      info: { status: "RUNNING", message: "Job is currently running.", startTime: 1767225600123, driverNodeId: "ab12" },
    });
  });

  it("takes of it no more than a status holds, or its end could never be written down", async () => {
    const { dashboard: d } = dashboard({
      "GET /api/jobs/job-1": ok({ status: "FAILED", message: "x".repeat(2_000_000), end_time: 1767225600123_000 }),
    });
    const answer = await d.job(at, "job-1");
    expect(answer).toEqual({ kind: "known", info: { status: "FAILED", message: expect.stringMatching(/^x+$/) } });
    expect(JSON.stringify(answer).length).toBeLessThan(40_000);
  });

  it("takes Ray's 404 for not found", async () => {
    const { dashboard: d } = dashboard({ "GET /api/jobs/x": { status: 404, body: "Job x does not exist" } });
    expect(await d.job(at, "x")).toEqual({ kind: "notFound" });
  });

  it("takes a 404 that is the API server's, about the Service, for no answer", async () => {
    const body = JSON.stringify({
      kind: "Status",
      apiVersion: "v1",
      status: "Failure",
      message: 'services "x" not found',
    });
    const { dashboard: d } = dashboard({ "GET /api/jobs/x": { status: 404, body } });
    expect(await d.job(at, "x")).toMatchObject({
      kind: "none",
      error: expect.stringContaining('services \\"x\\" not found'),
    });
  });

  it.each([301, 400, 401, 403, 429, 500, 502, 503])(
    "takes HTTP %i for no answer, though its body looks like a job",
    async (status) => {
      const { dashboard: d } = dashboard({ "GET /api/jobs/x": { ...ok({ status: "FAILED" }), status } });
      expect(await d.job(at, "x")).toMatchObject({ kind: "none", error: expect.stringContaining(`HTTP ${status}`) });
    },
  );

  it.each([
    ["an empty object", "{}"],
    ["a page", "<html></html>"],
    ["a Status", '{"kind":"Status","status":"Failure"}'],
    ["an unheard-of status", '{"status":"PAUSED"}'],
    ["another job", '{"status":"SUCCEEDED","submission_id":"y"}'],
    ["half an answer", '{"status":"SUCCE'],
  ])("takes %s for no answer", async (_, body) => {
    const { dashboard: d } = dashboard({ "GET /api/jobs/x": { status: 200, body } });
    expect((await d.job(at, "x")).kind).toBe("none");
  });

  it("takes silence for no answer, and says why", async () => {
    const error = new RayTransportError("connection refused", { maybeSent: false });
    const { dashboard: d } = dashboard({ "GET /api/jobs/x": error });
    expect(await d.job(at, "x")).toEqual({ kind: "none", error: "connection refused" });
  });

  it("percent-encodes the id", async () => {
    const { sent, dashboard: d } = dashboard({});
    await d.job(at, "a/b c?d#é");
    expect(sent[0]?.path).toBe("/api/jobs/a%2Fb%20c%3Fd%23%C3%A9");
  });

  it.each([-1, 0, 1e300, "soon"])("leaves out a start time of %s", async (start_time) => {
    const { dashboard: d } = dashboard({ "GET /api/jobs/x": ok({ status: "PENDING", start_time }) });
    expect(await d.job(at, "x")).toEqual({ kind: "known", info: { status: "PENDING", message: "" } });
  });
});

describe("the list of jobs", () => {
  it("finds submissions by their id and skips drivers that were not submitted", async () => {
    const { dashboard: d } = dashboard({
      "GET /api/jobs/": ok([
        { submission_id: "a", status: "RUNNING" },
        { submission_id: null, job_id: "01000000", type: "DRIVER", status: "RUNNING" },
      ]),
    });
    expect([...((await d.jobs(at)) as Map<string, unknown>).keys()]).toEqual(["a"]);
  });

  it("is no answer when it is no list", async () => {
    const { dashboard: d } = dashboard({ "GET /api/jobs/": ok({ error: "no" }) });
    expect(await d.jobs(at)).toBeTypeOf("string");
  });
});

describe("the nodes", () => {
  it("are learnt from the uncached summary", async () => {
    const summary = [
      { hostname: "a", raylet: { nodeId: "01", state: "ALIVE" } },
      { raylet: { nodeId: "02", state: "DEAD" } },
      { raylet: {} },
    ];
    const { dashboard: d } = dashboard({
      "GET /nodes?view=summary&nocache=1": ok({ result: true, data: { summary } }),
    });
    expect(await d.nodes(at)).toEqual(
      new Map([
        ["01", "ALIVE"],
        ["02", "DEAD"],
      ]),
    );
  });

  it("are unknown, not missing, when Ray cannot say", async () => {
    const { dashboard: d } = dashboard({ "GET /nodes?view=summary&nocache=1": { status: 500, body: "" } });
    expect(await d.nodes(at)).toBeUndefined();
  });
});

describe("a submission", () => {
  const request = { entrypoint: 'echo "$HOME" \\', submission_id: "job-1", metadata: { é: "`x`" } };
  const version = ok({ session_name: "session_1" });

  it("reaches Ray byte for byte, in the record's session", async () => {
    const { sent, dashboard: d } = dashboard({
      "GET /api/version": version,
      "POST /api/jobs/": ok({ job_id: "job-1" }),
    });
    expect(await d.submit(at, request, "session_1")).toMatchObject({ result: "done" });
    expect(JSON.parse(sent[1]!.body!)).toEqual(request);
  });

  it("is not sent into another session", async () => {
    const { sent, dashboard: d } = dashboard({ "GET /api/version": version });
    expect(await d.submit(at, request, "session_0")).toMatchObject({
      result: "refused",
      message: expect.stringContaining("session_1"),
    });
    expect(sent.map(({ method }) => method)).toEqual(["GET"]);
  });

  it("is not sent when Ray does not say which session it is", async () => {
    const { sent, dashboard: d } = dashboard({ "GET /api/version": { status: 503, body: "" } });
    expect((await d.submit(at, request, "session_1")).result).toBe("refused");
    expect(sent).toHaveLength(1);
  });

  it("is not sent once the lease may be lost", async () => {
    const { sent, dashboard: d } = dashboard({ "GET /api/version": version }, () => false);
    expect((await d.submit(at, request, "session_1")).result).toBe("refused");
    expect(sent.map(({ method }) => method)).toEqual(["GET"]);
  });

  it.each([
    [
      "the id is taken, so it is there",
      { status: 500, body: "ValueError: … Please use a different submission_id." },
      "done",
    ],
    [
      "Ray's agent refuses it",
      { status: 500, body: "RuntimeError: Request failed with status code 400: bad runtime_env" },
      "refused",
    ],
    ["Ray refuses it", { status: 400, body: "entrypoint must be a string" }, "refused"],
    ["Ray failed half-way", { status: 500, body: "Traceback\nOSError: no" }, "unknown"],
    ["a proxy gave up", { status: 504, body: "" }, "unknown"],
    ["the connection was refused", new RayTransportError("refused", { maybeSent: false }), "refused"],
    ["no answer came", new RayTransportError("no answer within 10 s", { maybeSent: true }), "unknown"],
  ])("when %s: %j is %s", async (_, answer, result) => {
    const { dashboard: d } = dashboard({ "GET /api/version": version, "POST /api/jobs/": answer });
    expect((await d.submit(at, request, "session_1")).result).toBe(result);
  });

  it("reports the last line of a traceback", async () => {
    const body = 'Traceback (most recent call last):\n  File "a.py"\nOSError: disk full\n.\n';
    const { dashboard: d } = dashboard({ "GET /api/version": version, "POST /api/jobs/": { status: 500, body } });
    expect((await d.submit(at, request, "session_1")).message).toBe("HTTP 500: OSError: disk full");
  });
});

describe("stopping", () => {
  it("is done when Ray does not know the job", async () => {
    const { dashboard: d } = dashboard({ "POST /api/jobs/x/stop": { status: 404, body: "Job x does not exist" } });
    expect((await d.stop(at, "x")).result).toBe("done");
  });

  it("is not done when it is the Service that is unknown", async () => {
    const { dashboard: d } = dashboard({ "POST /api/jobs/x/stop": { status: 404, body: '{"kind":"Status"}' } });
    expect((await d.stop(at, "x")).result).toBe("refused");
  });
});
