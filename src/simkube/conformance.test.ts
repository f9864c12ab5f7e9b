/** simkube must pass, in this process and through its HTTP door, what a real API server passes (test/integration). */
import { realClock } from "../machinery/clock.ts";
import { HttpTransport } from "../machinery/kube/http.ts";
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
