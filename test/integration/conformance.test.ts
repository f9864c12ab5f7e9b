/** What simkube must do like a real API server, asked of a real one. */
import { inject } from "vitest";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { conformance } from "../../src/simkube/conformance.ts";

conformance("kube-apiserver", () => {
  const transport = new HttpTransport(loadKubeconfig(inject("controlPlane")));
  return { transport, controllers: true, close: () => transport.close() };
});
