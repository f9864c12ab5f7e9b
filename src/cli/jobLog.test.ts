import { describe, expect, it } from "vitest";
import type { SecretRef } from "../domain/rayjob/ray.ts";
import type { KubeRequest, Transport } from "../machinery/kube/transport.ts";
import { TransportError } from "../machinery/kube/transport.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { followPodLog, followRayLog, Position, Shown } from "./jobLog.ts";

const stamp = (second: number, fraction = "0") => `2026-01-01T00:00:0${second}.${fraction}Z`;

/** An API server whose log endpoint gives these answers one after the other. */
function scripted(...answers: { status?: number; lines?: string[]; breaks?: boolean }[]) {
  const requests: KubeRequest[] = [];
  const transport = {
    stream: async (request: KubeRequest) => {
      requests.push(request);
      const { status = 200, lines = [], breaks = false } = answers.shift() ?? { status: 404 };
      return {
        status,
        headers: {},
        body: { kind: "Status", code: status, message: `status ${status}` },
        lines: (async function* () {
          yield* lines;
          if (breaks) throw new TransportError("connection reset", { maybeSent: true });
        })(),
      };
    },
  } as unknown as Transport;
  return { transport, requests, left: answers };
}

async function read(answers: Parameters<typeof scripted>, options: { ended?: () => boolean; shown?: Shown } = {}) {
  const clock = new VirtualClock();
  const server = scripted(...answers);
  let text = "";
  const troubles: string[] = [];
  const own: string[] = [];
  const following = followPodLog(
    {
      transport: server.transport,
      namespace: "ns",
      pod: "p",
      container: "c",
      shown: options.shown ?? new Shown(),
      ended: options.ended ?? (() => server.left.length <= 1),
    },
    {
      clock,
      signal: new AbortController().signal,
      onText: (piece) => (text += piece),
      onTrouble: (line) => troubles.push(line),
      onSubmitter: (line) => own.push(line),
    },
  );
  await clock.advance(60_000);
  await following;
  return { text, troubles, own, requests: server.requests };
}

describe("a submitter's log", () => {
  it("is shown without its time stamps", async () => {
    const { text, requests } = await read([{ lines: [`${stamp(1)} one`, `${stamp(2)} `, `${stamp(3)} 2026 three`] }]);
    expect(text).toBe("one\n\n2026 three\n");
    expect(requests[0]).toMatchObject({
      path: "/api/v1/namespaces/ns/pods/p/log",
      query: { container: "c", follow: "true", timestamps: "true" },
    });
  });

  it("goes on after a broken connection without showing a line twice or losing one", async () => {
    const { text, troubles, requests } = await read([
      { lines: [`${stamp(1, "1")} a`, `${stamp(1, "5")} b`, `${stamp(1, "5")} c`], breaks: true },
      // The server counts whole seconds, so it sends again what was read.
      {
        lines: [
          `${stamp(1, "1")} a`,
          `${stamp(1, "5")} b`,
          `${stamp(1, "5")} c`,
          `${stamp(1, "5")} d`,
          `${stamp(2)} e`,
        ],
      },
    ]);
    expect(text).toBe("a\nb\nc\nd\ne\n");
    expect(requests[1]!.query!["sinceTime"]).toBe("2026-01-01T00:00:01Z");
    expect(troubles).toEqual(["the log's connection broke (connection reset); reading on"]);
  });

  it("is the job's alone: what the submitter says for itself is told apart", async () => {
    const { text, own } = await read([{ lines: [`${stamp(1)} raykeeper: submitted job j`, `${stamp(2)} hello`] }]);
    expect([text, own]).toEqual(["hello\n", ["submitted job j"]]);
  });

  it("is waited for while the container starts, without a word", async () => {
    const { text, troubles } = await read([{ status: 400 }, { lines: [`${stamp(1)} a`] }]);
    expect([text, troubles]).toEqual(["a\n", []]);
  });

  it("ends when its Pod is gone", async () => {
    const { text } = await read([{ lines: [`${stamp(1)} a`] }, { status: 404 }], { ended: () => false });
    expect(text).toBe("a\n");
  });

  it("that a second submitter tells again from the start is shown once", async () => {
    const shown = new Shown();
    await read([{ lines: [`${stamp(1)} a`, `${stamp(2)} b`] }], { shown });
    shown.restart();
    const second = await read(
      [{ lines: [`${stamp(5)} following job-1`, `${stamp(5)} a`, `${stamp(6)} b`, `${stamp(7)} c`, `${stamp(7)} c`] }],
      { shown },
    );
    expect(second.text).toBe("following job-1\nc\nc\n");
  });
});

it("the log of a sidecar that was started again is shown once", async () => {
  const first = [`${stamp(1)} raykeeper: submitted job j`, `${stamp(1)} a`, `${stamp(2)} b`];
  const again = [`${stamp(5)} raykeeper: Ray has job j (RUNNING)`, `${stamp(5)} a`, `${stamp(6)} b`, `${stamp(7)} c`];
  const { text } = await read([{ lines: first }, { lines: again }], { shown: new Shown() });
  expect(text).toBe("a\nb\nc\n");
});

describe("a position in a log", () => {
  it("compares time stamps whose fractions differ in length", () => {
    const position = new Position();
    expect([stamp(1, "9"), stamp(1, "91"), stamp(1, "909")].map((at) => position.take(`${at} x`))).toEqual([
      "x",
      "x",
      undefined,
    ]);
  });

  it("takes a line without time stamp as it is", () => expect(new Position().take("plain")).toBe("plain"));
});

describe("a log read from Ray's dashboard", () => {
  /** A dashboard with one job, or none that answers; `asked` are the paths. */
  function dashboard() {
    const clock = new VirtualClock();
    const ray = {
      status: "RUNNING",
      logs: "",
      answers: 200,
      wants: undefined as string | undefined,
      asked: [] as string[],
    };
    const seen = {
      text: "",
      troubles: [] as string[],
      ended: false,
      over: false,
      secret: undefined as SecretRef | undefined,
    };
    const end = Promise.withResolvers<void>();
    const request = async ({ path, token }: { path: string; token?: SecretRef }) => {
      ray.asked.push(path);
      if (ray.wants !== token?.name) return { status: 401, body: "Unauthorized" };
      if (ray.answers !== 200) return { status: ray.answers, body: "no" };
      return {
        status: 200,
        body: JSON.stringify(path.endsWith("/logs") ? { logs: ray.logs } : { status: ray.status }),
      };
    };
    const following = followRayLog(
      {
        transport: { request },
        at: () => ({ dashboard: "svc.ns:8265", ...(seen.secret && { token: seen.secret }) }),
        jobId: "j",
        ended: () => seen.ended,
        end: end.promise,
      },
      {
        clock,
        signal: new AbortController().signal,
        onText: (piece) => (seen.text += piece),
        onTrouble: (line) => seen.troubles.push(line),
      },
    );
    void following.finally(() => (seen.over = true));
    /** The RayJob says that the job has ended. */
    const tellEnd = () => {
      seen.ended = true;
      end.resolve();
    };
    return { clock, ray, seen, following, tellEnd };
  }

  it("shows what is new each time, and reads once more after the end", async () => {
    const { clock, ray, seen, following, tellEnd } = dashboard();
    for (const logs of ["a\nb", "a\nbc\n"]) {
      ray.logs = logs;
      await clock.advance(1000);
    }
    expect(seen).toMatchObject({ text: "a\nbc\n", over: false });
    ray.logs += "d\n";
    tellEnd();
    await following;
    expect(seen).toMatchObject({ text: "a\nbc\nd\n", troubles: [] });
  });

  it("reads its end at once when the RayJob tells of it, before a cluster that goes at once is gone", async () => {
    const { clock, ray, seen, following, tellEnd } = dashboard();
    await clock.advance(100);
    ray.logs = "the last line\n";
    tellEnd();
    await following;
    expect(seen.text).toBe("the last line\n");
  });

  it("is read though the RayCluster, which tells of Ray's token, came into sight later", async () => {
    const { clock, ray, seen, following, tellEnd } = dashboard();
    Object.assign(ray, { wants: "own", logs: "hello\n" });
    await clock.advance(3000);
    expect(seen.text).toBe("");
    seen.secret = { namespace: "ns", name: "own" };
    await clock.advance(3000);
    expect(seen.text).toBe("hello\n");
    tellEnd();
    await following;
  });

  it("is complete when Ray said before that the job had ended, though the cluster is gone when the RayJob says so", async () => {
    const { clock, ray, seen, following, tellEnd } = dashboard();
    await clock.advance(100);
    Object.assign(ray, { status: "SUCCEEDED", logs: "the last line\n" });
    await clock.advance(1000);
    ray.answers = 503;
    tellEnd();
    await following;
    expect(seen).toMatchObject({ text: "the last line\n", troubles: [] });
  });

  it("says once that it cannot be read, and tries on; at the end, that its end is missing, and what keeps it", async () => {
    const { clock, ray, seen, following, tellEnd } = dashboard();
    ray.answers = 403;
    await clock.advance(5000);
    expect(ray.asked.length).toBeGreaterThan(3);
    tellEnd();
    await following;
    expect(seen.troubles).toEqual([
      "the job's log cannot be read through the API server (HTTP 403: no); trying again",
      expect.stringMatching(
        /^the end of the job's log could not be read: HTTP 403: no\. In HTTPMode .* spec\.ttlSecondsAfterFinished keeps/,
      ),
    ]);
  });
});
