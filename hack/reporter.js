// A vitest reporter that writes what hack/test.js sums up: counts, names of failed tests, those that passed at the second
// try with why they did not at the first, and the reason of each skip (vitest's own JSON has no reasons).
import { writeFileSync } from "node:fs";

export default class SummaryReporter {
  /** Scenarios on the one-node cluster take minutes, and two run at a time: each tells when it begins, too. */
  onTestCaseReady({ project, fullName, options }) {
    if (project.name === "cluster" && options.mode !== "skip") console.log(`[cluster] ${fullName} …`);
  }

  onTestRunEnd(modules, unhandledErrors) {
    const report = { passed: 0, failed: 0, failures: [], unsteady: [], skipped: [] };
    const fail = (name) => {
      report.failed++;
      report.failures.push({ name });
    };
    for (const module of modules) {
      const file = module.relativeModuleId ?? module.moduleId;
      // A file that cannot be loaded, or a hook that fails, has no failed test to show for it.
      const failedBefore = report.failed;
      for (const test of module.children.allTests()) {
        const { state, note, errors } = test.result();
        const name = `${file} > ${test.fullName}`;
        if (test.diagnostic()?.flaky) report.unsteady.push({ name, reason: errors?.[0]?.message.split("\n")[0] });
        if (state === "passed") report.passed++;
        else if (state === "failed") fail(name);
        else report.skipped.push({ name, reason: note ?? "no reason given" });
      }
      if (module.state() === "failed" && report.failed === failedBefore) fail(file);
    }
    for (const error of unhandledErrors) fail(`an error outside of any test: ${error.message}`);
    if (process.env.RAYKEEPER_TEST_REPORT) writeFileSync(process.env.RAYKEEPER_TEST_REPORT, JSON.stringify(report));
  }
}
