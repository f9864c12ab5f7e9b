/**
 * Whatever a user does, in whatever order: edits, good and bad, suspensions, deletions, at any moments of a life. All
 * oracles of the explorer look on; in the end the world must settle, and write nothing any more.
 *
 * A failure is shrunk to the shortest sequence that still fails, and printed with its seed and path. To live it again:
 * RAYKEEPER_MOVES='{"seed":1,"path":"3:0"}'; for more of them: RAYKEEPER_MOVES='{"numRuns":2000}'.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { Life, type Move } from "./explorer/life.ts";
import { fails, runsForEver, succeeds } from "./fakeRay.ts";

const edit = fc.oneof(
  fc.record({ entrypoint: fc.constantFrom("python a.py", "python b.py $(X)", "") }),
  fc.record({ backoffLimit: fc.constantFrom(0, 1, 2) }),
  fc.record({ activeDeadlineSeconds: fc.constantFrom(4, 15, 600, null) }),
  fc.record({ suspend: fc.boolean() }),
  fc.record({ ttlSecondsAfterFinished: fc.constantFrom(0, 20) }),
  fc.record({ shutdownAfterJobFinishes: fc.boolean() }),
  fc.record({ runtimeEnvYAML: fc.constantFrom("", "env_vars: {A: b}", "[1]", "a: {") }),
  fc.record({ entrypointResources: fc.constantFrom('{"R1": 1}', "no JSON") }),
);
/** Most acts follow soon on the one before; a life without any lasts half a minute. */
const after = fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 12_000 }));
const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ after, edit }) },
  {
    weight: 1,
    arbitrary: fc.record({ after, act: fc.constantFrom("delete", "recreate", "delete-cluster", "delete-submitter") }),
  },
);
/** In the end the user wants something that can be had. */
const wanted: Move = {
  after: 100,
  edit: {
    entrypoint: "python a.py",
    runtimeEnvYAML: "",
    entrypointResources: null,
    shutdownAfterJobFinishes: true,
    activeDeadlineSeconds: 900,
  },
};
const jobs = fc.array(fc.constantFrom(succeeds(3000), fails(3000), succeeds(15_000), runsForEver), {
  minLength: 1,
  maxLength: 3,
});

it("whatever a user does, nothing runs twice, and all comes to an end", { timeout: 600_000 }, async () => {
  const more = JSON.parse(process.env["RAYKEEPER_MOVES"] ?? "{}") as object;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("success", "success-http"),
      jobs,
      fc.array(move, { minLength: 1, maxLength: 8 }),
      async (lifecycle, given, moves) => {
        const life = new Life({ lifecycle, deviations: [] }, { user: [...moves, wanted], jobs: given });
        expect((await life.run()).violations).toEqual([]);
      },
    ),
    { numRuns: 20, seed: 1, ...more },
  );
});
