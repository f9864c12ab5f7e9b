/**
 * What the operator asked the API server for while all the other scenarios ran, by the API server's own audit log: it
 * was refused nothing, and every right that its chart gives it was used, or has a reason to be there.
 *
 * A project of its own, since it must come last; test/cluster/setup.ts tells it by its environment when the run began.
 */
import { describe, expect, it } from "vitest";
import {
  leaderElectionPermissions,
  operatorPermissions,
  type Permission,
  webhookConfigurationPermissions,
  webhookPermissions,
} from "../../src/permissions.ts";
import { type Audited, audited } from "./audit.ts";
import { OPERATOR, OPERATOR_USER } from "./operator.ts";

/** Rights that scenarios on a node that works may have no use for; the tests on a real API server see each of them used. */
const SELDOM: Readonly<Record<string, string>> = {
  "get pods": "asked for after a write whose outcome is not known, and before what cannot be undone",
  "delete pods": "a Pod is deleted alone when it has failed and is replaced, or when there is one too many",
  "patch jobs": "a submitter that still runs, or would be started again, when its job is over",
  "delete services": "while a RayCluster is suspended that no RayJob has made",
};

const resourceOf = ({ objectRef: { resource = "", subresource } = {} }: Audited): string =>
  subresource ? `${resource}/${subresource}` : resource;

const uses = (one: Audited, { group, resource, names }: Permission, verb: string): boolean =>
  one.verb === verb &&
  (one.objectRef?.apiGroup ?? "") === group &&
  resourceOf(one) === resource &&
  (names === undefined || names.includes(one.objectRef?.name ?? ""));

const began = Number(process.env["RAYKEEPER_CLUSTER_BEGAN"]);
expect(began, "the time at which test/cluster/setup.ts began").toBeGreaterThan(0);
const all = audited(OPERATOR_USER, began);
const granted = [
  ...operatorPermissions,
  ...leaderElectionPermissions,
  ...webhookPermissions,
  ...webhookConfigurationPermissions(OPERATOR.namespace),
].filter(({ when }) => when === undefined);

it("the operator asked the API server for a lot, and was refused nothing", () => {
  console.log(`[cluster] the operator asked ${all.length} times`);
  expect(all.length).toBeGreaterThan(100);
  // 403 alone says less: whoever creates something in a namespace that is being deleted is answered so, too.
  const refused = all.filter(
    ({ responseStatus, annotations }) =>
      responseStatus?.code === 401 || annotations?.["authorization.k8s.io/decision"] === "forbid",
  );
  expect(
    refused.map(({ verb, requestURI, responseStatus }) => `${responseStatus?.code} ${verb} ${requestURI}`),
  ).toEqual([]);
});

describe("a right that the chart grants", () => {
  const rights = granted
    .filter(({ unseen }) => unseen === undefined)
    .flatMap((permission) =>
      permission.verbs.map((verb) => ({ permission, verb, right: `${verb} ${permission.resource}` })),
    );

  it.each(rights)("$right was used, or is seldom, for a reason", ({ permission, verb, right }) => {
    expect(all.some((one) => uses(one, permission, verb)) || right in SELDOM, "whether anybody used it").toBe(true);
  });

  it("is in the table only if it exists", () => {
    const known = rights.map(({ right }) => right);
    expect(Object.keys(SELDOM).filter((right) => !known.includes(right))).toEqual([]);
  });
});
