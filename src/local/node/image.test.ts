import { describe, expect, it } from "vitest";
import { meaningOf } from "./image.ts";

describe("what an image means to the local node", () => {
  it.each([
    ["rayproject/ray:2.56.0", "2.56.0"],
    ["rayproject/ray:2.56.0-py311-gpu", "2.56.0"],
    ["docker.io/rayproject/ray-ml:2.9.3", "2.9.3"],
    ["localhost:5000/ray:2.56.0", "2.56.0"],
    ["registry.example:443/team/ray_custom:2.56.0rc1-aarch64", "2.56.0rc1"],
    ["rayproject/ray:2.56.0@sha256:0123", "2.56.0"],
  ])("%s is Ray %s", (image, rayVersion) => {
    expect(meaningOf(image)).toEqual({ rayVersion });
  });

  it.each([
    ["nginx:1.2", "is no image of Ray"],
    ["rayproject/array:2.56.0", "is no image of Ray"],
    ["rayproject/ray", 'tag "latest" names no version'],
    ["rayproject/ray:nightly", 'tag "nightly" names no version'],
    ["localhost:5000/ray", 'tag "latest" names no version'],
    ["rayproject/ray@sha256:0123", "a digest does not tell"],
  ])("%s is refused, and says what would do", (image, why) => {
    const { refused } = meaningOf(image) as { refused: string };
    expect(refused).toContain(why);
    expect(refused).toContain("rayproject/ray:2.56.0");
  });
});
