import { describe, expect, it } from "vitest";
import type { SecretRef } from "../domain/rayjob/ray.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { type KubeRequest, type Transport, TransportError } from "../machinery/kube/transport.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { withTokens } from "./tokens.ts";
import type { RayRequest, RayResponse } from "./transport.ts";

const REF: SecretRef = { namespace: "team-a", name: "own" };
const MISSING = { status: 401, body: "Unauthorized: Missing authentication token" };
const INVALID = { status: 403, body: "Forbidden: Invalid authentication token" };
const OK = { status: 200, body: "{}" };

type Secret = Record<string, string> | "gone" | "forbidden" | "unreachable" | "hangs";

interface State {
  secret: Secret;
  wanted: string | undefined;
  reads: number;
  readonly shown: (string | undefined)[];
  readonly sent: RayRequest[];
}

/** A Ray that wants `wanted`, and an API server with one Secret, whose text it has in base64. */
function world(secret: Secret) {
  const clock = new VirtualClock();
  const state: State = { secret, wanted: "sesame", reads: 0, shown: [], sent: [] };
  const refuse = (status: number, reason: string, message: string) => ({
    status,
    headers: {},
    body: { kind: "Status", status: "Failure", reason, code: status, message },
  });
  const kubernetes = {
    async request({ path }: KubeRequest) {
      expect(path).toBe("/api/v1/namespaces/team-a/secrets/own");
      state.reads++;
      const { secret: now } = state;
      if (now === "gone") return refuse(404, "NotFound", 'secrets "own" not found');
      if (now === "forbidden") return refuse(403, "Forbidden", 'secrets "own" is forbidden');
      if (now === "unreachable") throw new TransportError("connection refused", { maybeSent: false });
      if (now === "hangs") return new Promise(() => {});
      const data = Object.fromEntries(Object.entries(now).map(([key, text]) => [key, btoa(text)]));
      return {
        status: 200,
        headers: {},
        body: { metadata: { name: "own", namespace: "team-a", uid: "u", resourceVersion: "1" }, data },
      };
    },
  } as unknown as Transport;
  const ray = withTokens(
    {
      async request(request): Promise<RayResponse> {
        const token = request.headers?.["x-ray-authorization"];
        state.shown.push(token);
        state.sent.push(request);
        if (state.wanted === undefined || token === `Bearer ${state.wanted}`) return OK;
        return token === undefined ? MISSING : INVALID;
      },
    },
    { client: new KubeClient(kubernetes, { clock }), clock },
  );
  const ask = (more: Partial<RayRequest> = {}) =>
    ray.request({ method: "GET", dashboard: "head:8265", path: "/api/version", timeout: 10_000, token: REF, ...more });
  return { clock, state, ask };
}

describe("a Ray that wants a token", () => {
  it("is shown the one in the Secret, in the header that a proxy leaves alone", async () => {
    const { ask, state } = world({ auth_token: "sesame" });
    expect(await ask({ headers: { accept: "*/*" } })).toEqual(OK);
    expect(state.sent[0]!.headers).toEqual({ accept: "*/*", "x-ray-authorization": "Bearer sesame" });
  });

  it("costs one read of the Secret, however often it is asked, and at once", async () => {
    const { ask, state, clock } = world({ auth_token: "sesame" });
    await Promise.all([ask(), ask(), ask({ method: "POST" })]);
    for (let hour = 0; hour < 12; hour++) {
      await clock.advance(300_000);
      await ask();
    }
    expect(state.reads).toBe(1);
  });

  it("is shown no line break that a file left", async () => {
    const { ask, state } = world({ auth_token: " sesame\n" });
    expect(await ask()).toEqual(OK);
    expect(state.shown).toEqual(["Bearer sesame"]);
  });

  it("is shown the new one when it refuses the old one: a command, too, which was not carried out", async () => {
    const { ask, state, clock } = world({ auth_token: "sesame" });
    await ask();
    await clock.advance(60_000);
    state.wanted = "another";
    state.secret = { auth_token: "another" };
    expect(await ask({ method: "POST", body: "{}" })).toEqual(OK);
    expect(state.shown.slice(1)).toEqual(["Bearer sesame", "Bearer another"]);
    expect(state.sent.at(-1)).toMatchObject({ method: "POST", body: "{}" });
    expect(state.reads).toBe(2);
  });

  it("goes on being shown the old one when the Secret is changed or gone, as long as it takes it", async () => {
    const { ask, state, clock } = world({ auth_token: "sesame" });
    await ask();
    state.secret = "gone";
    await clock.advance(300_000);
    expect(await ask()).toEqual(OK);
    expect(state.reads).toBe(1);
  });

  it("that refuses what the Secret has costs a read every ten seconds, and no second request", async () => {
    const { ask, state, clock } = world({ auth_token: "wrong" });
    for (let second = 0; second < 60; second++) {
      expect((await ask()).status).toBe(403);
      await clock.advance(1000);
    }
    expect(state.reads).toBe(6);
    expect(state.sent).toHaveLength(60);
  });

  it("is forgotten when nobody has asked it for long", async () => {
    const { ask, state, clock } = world({ auth_token: "sesame" });
    await ask();
    await clock.advance(700_000);
    await ask();
    expect(state.reads).toBe(2);
  });

  it.each<[Secret, RegExp]>([
    ["gone", /^Secret team-a\/own does not exist, whose key auth_token should have Ray's token: create it/],
    [{ token: "sesame" }, /^Secret team-a\/own has no key auth_token: put Ray's token there$/],
    [{ auth_token: "\n" }, /has no token under the key auth_token/],
    [{ auth_token: "säsame" }, /has no token under the key auth_token/],
    [
      "forbidden",
      /^Secret team-a\/own, .* may not be read by the operator \(secrets "own" is forbidden\): give it the right/,
    ],
    ["unreachable", /^Secret team-a\/own, which has Ray's token, could not be read \(connection refused\)$/],
    [
      { auth_token: "wrong" },
      /^Ray does not take the token of Secret team-a\/own, key auth_token: its head was started with another/,
    ],
  ])("and does not get it (the Secret: %j) refuses, and it is said what to do", async (secret, words) => {
    const { ask } = world(secret);
    const { status, remedy } = await ask();
    expect([401, 403]).toContain(status);
    expect(remedy).toMatch(words);
    expect(remedy).not.toContain("wrong");
  });

  it("gets a token that comes late", async () => {
    const { ask, state, clock } = world("gone");
    expect((await ask()).status).toBe(401);
    state.secret = { auth_token: "sesame" };
    await clock.advance(10_000);
    expect(await ask()).toEqual(OK);
  });

  it("is not waited for longer than for any other, whatever the API server does", async () => {
    const { ask, state, clock } = world("hangs");
    const late = ask();
    const end = expect(late).rejects.toMatchObject({ name: "RayTransportError", maybeSent: false });
    await clock.advance(10_000);
    await end;
    expect(state.sent).toEqual([]);
  });
});

describe("a Ray that wants none", () => {
  it("is asked all the same where a Secret is named that is not there: an answer is an answer", async () => {
    const { ask, state } = world("gone");
    state.wanted = undefined;
    expect(await ask()).toEqual(OK);
  });

  it("is asked without, and nothing is read", async () => {
    const { ask, state } = world("gone");
    state.wanted = undefined;
    expect(await ask({ token: undefined })).toEqual(OK);
    expect([state.reads, state.shown]).toEqual([0, [undefined]]);
  });
});

it("a token that the RayCluster says nothing of is asked for in words", async () => {
  const { ask } = world("gone");
  expect((await ask({ token: undefined })).remedy).toMatch(/spec\.authOptions of its RayCluster .* set mode to token/);
});

it("a refusal by the API server, which may be the proxy, is none of Ray's", async () => {
  const clock = new VirtualClock();
  const body = JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", reason: "Forbidden", code: 403 });
  const client = new KubeClient({} as Transport, { clock });
  const ray = withTokens({ request: async () => ({ status: 403, body }) }, { client, clock });
  const answer = await ray.request({ method: "GET", dashboard: "head:8265", path: "/", timeout: 1000 });
  expect(answer).toEqual({ status: 403, body });
});
