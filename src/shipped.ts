/**
 * What the program carries with it as data: its version, and the program of the submitter.
 *
 * May not: be read any other way. The image has the program as one file, without its folders; hack/image/bundle.ts puts
 * the values of this module in its place, and refuses whatever else looks for a file beside itself.
 */
import { readFileSync } from "node:fs";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8");

export const VERSION: string = JSON.parse(read("../package.json")).version;
/** Python, for the Pod that submits: src/submitter. */
export const SUBMITTER_PROGRAM: string = read("submitter/submit.py");
