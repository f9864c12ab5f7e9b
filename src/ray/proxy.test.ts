import { describe, expect, it } from "vitest";
import { type KubeRequest, type Transport, TransportError } from "../machinery/kube/transport.ts";
import { proxyRayTransport } from "./proxy.ts";

function kubernetes(answer: { status: number; body: unknown } | Error) {
  const sent: KubeRequest[] = [];
  const transport = {
    async request(request: KubeRequest) {
      sent.push(request);
      if (answer instanceof Error) throw answer;
      return { headers: {}, ...answer };
    },
  } as unknown as Transport;
  return { sent, ray: proxyRayTransport(transport) };
}

const at = "raysubmit-head-svc.team-a.svc.cluster.local:8265";

describe("a dashboard behind the API server's proxy", () => {
  it("is asked at its Service's port named dashboard, in the Service's namespace", async () => {
    const { sent, ray } = kubernetes({ status: 200, body: { data: [] } });
    const answer = await ray.request({
      method: "GET",
      dashboard: at,
      path: "/nodes?view=summary&nocache=1",
      timeout: 1,
    });
    expect(sent[0]).toMatchObject({
      path: "/api/v1/namespaces/team-a/services/raysubmit-head-svc:dashboard/proxy/nodes",
      query: { view: "summary", nocache: "1" },
    });
    expect(answer).toEqual({ status: 200, body: '{"data":[]}' });
  });

  it("is told what it would be told directly", async () => {
    const { sent, ray } = kubernetes({ status: 404, body: "Job a/b does not exist" });
    const body = JSON.stringify({ entrypoint: "echo 'é'" });
    const answer = await ray.request({ method: "POST", dashboard: at, path: "/api/jobs/a%2Fb/stop", body, timeout: 1 });
    expect(sent[0]?.path).toMatch(/proxy\/api\/jobs\/a%2Fb\/stop$/);
    expect(sent[0]?.body).toEqual({ entrypoint: "echo 'é'" });
    expect(answer.body).toBe("Job a/b does not exist");
  });

  it("keeps apart what was surely not sent from what may have been", async () => {
    const { ray } = kubernetes(new TransportError("refused", { maybeSent: false }));
    await expect(ray.request({ method: "GET", dashboard: at, path: "/", timeout: 1 })).rejects.toMatchObject({
      name: "RayTransportError",
      maybeSent: false,
    });
  });

  it.each([
    "localhost:8265",
    "theirs-head-svc.their-namespace.team-a.svc.cluster.local:8265",
    "a/../b.team-a.svc.cluster.local:8265",
    "a%2Fb.team-a.svc.cluster.local:8265",
    "a.team-a?x.svc.cluster.local:8265",
  ])("cannot be reached by an address that names no Service: %s", async (dashboard) => {
    const { sent, ray } = kubernetes({ status: 200, body: "" });
    await expect(ray.request({ method: "GET", dashboard, path: "/", timeout: 1 })).rejects.toMatchObject({
      maybeSent: false,
    });
    expect(sent).toEqual([]);
  });
});
