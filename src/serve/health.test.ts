import { describe, expect, it } from "vitest";
import { silent } from "../machinery/logger.ts";
import { Vitals } from "../machinery/vitals.ts";
import { liveness, readiness } from "./health.ts";

describe("/healthz", () => {
  it("is well while every part moves", () => {
    expect(liveness(new Vitals(), silent)).toEqual({ body: "ok\n" });
  });

  it("fails when a part is stuck, names it, and leaves it in the log for whoever asks why there was a restart", () => {
    let now = 0;
    const vitals = new Vitals(() => now);
    vitals.beat("watch of pods", 1000);
    now = 61_000;
    const logged: unknown[] = [];
    const log = { ...silent, error: (fields: object) => logged.push(fields) };
    expect(liveness(vitals, log)).toEqual({
      status: 500,
      body: "[-] watch of pods: no sign of life for 60 s more than it may take\n",
    });
    expect(logged).toEqual([{ stuck: [{ part: "watch of pods", seconds: 60 }] }]);
  });
});

describe("/readyz", () => {
  const leads = { name: "leadership", ok: true, note: "standing by; operator-0 leads" };

  it("says how things stand when they are well", () => {
    expect(readiness([{ name: "caches", ok: true, note: "filled" }, leads])).toEqual({
      status: 200,
      body: "[+] caches: filled\n[+] leadership: standing by; operator-0 leads\nok\n",
    });
  });

  it("says what is missing when they are not", () => {
    const caches = { name: "caches", ok: false, note: "waiting for pods (GET /api/v1/pods: 403)" };
    expect(readiness([caches, leads])).toMatchObject({
      status: 503,
      body: expect.stringMatching(/^\[-\] caches: waiting for pods .*403\)\n.*\nnot ready\n$/),
    });
  });
});
