import { defineConfig } from "vitest/config";

// Projects, because they share nothing: `unit` is pure and fast, `integration` has a real API server and plays the
// kubelet and Ray, `image` builds the container image and runs what is in it, `e2e` runs real Ray processes one scenario
// at a time, `cluster` has a real node, for two at a time, and
// `cluster-alone` for one.
/**
 * Where a real Ray or a real node is part of the test, and the machine has other work, a scenario has a second try. One that
 * needs it is told in the summary, with what went wrong: it is to be looked into, but does not hold up everything else.
 */
const SECOND_TRY = { retry: 1 };

/** They take the operator away, and with it the webhook: nobody else could create a RayJob meanwhile. */
const ALONE = ["operator", "webhook"].map((name) => `test/cluster/${name}.test.ts`);

export default defineConfig({
  test: {
    // Until a cluster that the tests brought up is down again.
    teardownTimeout: 120_000,
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts", "hack/**/*.test.ts"],
          exclude: [
            "**/node_modules/**",
            ...["integration", "image", "e2e", "cluster"].map((name) => `test/${name}/**`),
          ],
          pool: "threads",
          isolate: false,
          // Ten times what the longest takes alone: other work on the machine is no failure.
          testTimeout: 120_000,
        },
      },
      {
        test: {
          name: "integration",
          include: ["test/integration/**/*.test.ts"],
          // The control plane that the tests share.
          globalSetup: ["test/integration/setup.ts"],
          disableConsoleIntercept: true,
          pool: "forks",
          fileParallelism: false,
          // Lifecycles wait for one another's sake most of the time, so they live side by side.
          maxConcurrency: 100,
          // More than world and history wait for anything, so that they can say what they waited for.
          testTimeout: 900_000,
          hookTimeout: 900_000,
        },
      },
      {
        test: {
          name: "image",
          include: ["test/image/**/*.test.ts"],
          testTimeout: 240_000,
          hookTimeout: 300_000,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          // The embedded cluster that the scenarios share.
          globalSetup: ["test/e2e/setup.ts"],
          // Progress as it happens, a line a line.
          disableConsoleIntercept: true,
          pool: "forks",
          fileParallelism: false,
          testTimeout: 600_000,
          hookTimeout: 900_000,
          ...SECOND_TRY,
        },
      },
      {
        test: {
          name: "cluster",
          include: ["test/cluster/**/*.test.ts"],
          exclude: [...ALONE, "test/cluster/rights.test.ts"],
          // The one-node cluster that the scenarios share, and the operator on it.
          globalSetup: ["test/cluster/setup.ts"],
          disableConsoleIntercept: true,
          pool: "forks",
          // A Ray takes half a minute of CPU to start, and the machine has to do all else, too.
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
          testTimeout: 600_000,
          hookTimeout: 300_000,
          ...SECOND_TRY,
        },
      },
      {
        test: {
          name: "cluster-alone",
          include: ALONE,
          globalSetup: ["test/cluster/setup.ts"],
          disableConsoleIntercept: true,
          pool: "forks",
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
          testTimeout: 600_000,
          hookTimeout: 300_000,
          ...SECOND_TRY,
        },
      },
      {
        test: {
          name: "cluster-rights",
          include: ["test/cluster/rights.test.ts"],
          disableConsoleIntercept: true,
          pool: "forks",
          maxWorkers: 1,
          // What the operator was seen asking for, after all the scenarios.
          sequence: { groupOrder: 3 },
        },
      },
    ],
  },
});
