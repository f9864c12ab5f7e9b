/**
 * The submitter's program, as the text that its container is given. It is Python, since Ray's job SDK is; see submit.py.
 */
import { readFileSync } from "node:fs";

export const submitterProgram = readFileSync(new URL("./submit.py", import.meta.url), "utf8");
