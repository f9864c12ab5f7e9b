/** simkube must pass, in this process and through its HTTP door, what a real API server passes. */
import { describe, it } from "vitest";
import { realClock } from "../machinery/clock.ts";
import { HttpTransport } from "../machinery/kube/http.ts";
import { loadKubeconfig } from "../machinery/kube/kubeconfig.ts";
import { conformance, widgetRules } from "./conformance.ts";
import { serve } from "./http.ts";
import { SimKube } from "./simkube.ts";

conformance("simkube in process", () => {
  const simkube = new SimKube({ clock: realClock, seed: 1, rules: widgetRules });
  const close = simkube.runControllers();
  return { transport: simkube.transport, controllers: true, close };
});

conformance("simkube through HTTP", async () => {
  const simkube = new SimKube({ clock: realClock, seed: 1, rules: widgetRules });
  const stop = simkube.runControllers();
  const served = await serve(simkube);
  const transport = new HttpTransport({ server: served.address, credentials: async () => ({}), refresh() {} });
  return {
    transport,
    controllers: true,
    async close() {
      stop();
      await transport.close();
      await served.close();
    },
  };
});

const KUBECONFIG = process.env["CONFORMANCE_KUBECONFIG"];
if (KUBECONFIG) {
  conformance("a real one", async () => {
    const transport = new HttpTransport(await loadKubeconfig(KUBECONFIG));
    return { transport, controllers: true, close: () => transport.close() };
  });
} else {
  describe("an API server (a real one)", () => {
    it.skip("is not asked: set CONFORMANCE_KUBECONFIG to the kubeconfig of a throw-away cluster, without kubelets", () => {});
  });
}
