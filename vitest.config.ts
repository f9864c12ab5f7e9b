import { defineConfig } from "vitest/config";

// Projects, because they share nothing: `unit` is pure and fast, `integration` has a real API server and plays the
// kubelet and Ray, `image` builds the container image and runs what is in it, `e2e` runs real Ray processes one scenario
// at a time.
export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: ["src/**/*.test.ts", "test/**/*.test.ts", "hack/**/*.test.ts"],
          exclude: ["**/node_modules/**", "test/integration/**", "test/e2e/**", "test/image/**"],
          pool: "threads",
          isolate: false,
          testTimeout: 30_000,
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
          testTimeout: 240_000,
          hookTimeout: 240_000,
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
        },
      },
    ],
  },
});
