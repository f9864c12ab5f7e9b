import { describe, expect, it } from "vitest";
import { nearest, notInstalled, prepareRay } from "./rayEnvironment.ts";

const interpreter = { executable: "/usr/bin/python3", version: [3, 11] as const, basePrefix: "/usr" };
const failure = (output: string) => {
  const { message, remedy } = notInstalled(output, "2.56.9", interpreter);
  return `${message} | ${remedy}`;
};

describe("a Ray that cannot be installed", () => {
  it("names the versions nearby when there is none of this number", () => {
    const said =
      "ERROR: Could not find a version that satisfies the requirement ray[default]==2.56.9 (from versions: 2.9.3, 2.55.1, 2.56.0rc0, 2.56.0, 2.56.1, 2.57.0, 2.60.0)\nERROR: No matching distribution found for ray[default]==2.56.9";
    expect(failure(said)).toContain("there is no Ray 2.56.9 on PyPI for Python 3.11");
    expect(failure(said)).toContain("Nearest versions: 2.56.0, 2.56.1, 2.57.0.");
  });

  it("is the network's fault when PyPI showed no version at all", () => {
    const said =
      "WARNING: Retrying after connection broken by 'NewConnectionError(...)': /simple/ray/\nERROR: Could not find a version that satisfies the requirement ray[default]==2.56.9 (from versions: none)\nERROR: No matching distribution found for ray[default]==2.56.9";
    expect(failure(said)).toContain("PyPI cannot be reached");
  });

  it("is the disk's fault when it is full", () => {
    expect(
      failure("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"),
    ).toContain("RAYKEEPER_CACHE");
  });

  it("otherwise says what pip said last", () => {
    expect(failure("ERROR: something odd\n  at the end")).toContain("something odd");
  });

  it("is refused before anything is downloaded when its version is none", async () => {
    await expect(prepareRay({ version: "2.56; rm -rf" })).rejects.toThrow('"2.56; rm -rf" is no version of Ray');
  });

  it("says which Python is missing", async () => {
    await expect(prepareRay({ version: "2.56.0", python: "/nonexistent/python" })).rejects.toMatchObject({
      message: "/nonexistent/python was not found",
      remedy: expect.stringContaining("RAYKEEPER_PYTHON"),
    });
  });
});

describe("the nearest versions", () => {
  it("are released ones, in order", () => {
    expect(nearest("2.30.5", ["2.9.0", "2.30.0", "2.31.0rc1", "2.31.0", "3.0.0"])).toEqual([
      "2.9.0",
      "2.30.0",
      "2.31.0",
    ]);
  });
});
