// The submitter is Python, and so are its tests; they need no Ray, only the machine's Python 3.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const here = fileURLToPath(new URL(".", import.meta.url));
const program = readFileSync(new URL("./submit.py", import.meta.url), "utf8");

it("the submitter does its work with a Ray that is slow, breaks, forgets or refuses (submit_test.py)", async () => {
  const run = promisify(execFile)("python3", ["-B", "-m", "unittest", "submit_test"], { cwd: here, timeout: 60_000 });
  // unittest reports on standard error, and exits 1 when a test failed: then its report is the message.
  const { stderr } = await run.catch((error: { stderr?: string; message: string }) => {
    throw new Error(error.stderr || error.message);
  });
  expect(stderr).toMatch(/Ran \d\d+ tests[\s\S]*OK/);
});

it("the program fits into one argument, and nothing in it is for kubelet to expand", () => {
  expect(new TextEncoder().encode(program).length).toBeLessThan(128 * 1024);
  expect(program).not.toContain("$");
});
