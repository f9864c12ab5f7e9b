/**
 * The ValidatingWebhookConfiguration as it is installed: names and paths are KubeRay's.
 *
 * It fails closed. What need not be asked is settled by the API server itself, so that objects can go, and finalizers be
 * taken off, also while no replica answers; and the operator, which checks what it writes, does not wait for itself. Whom
 * to trust is not here: keeper.ts or cert-manager adds that.
 */
import { configurationName } from "./keeper.ts";
import { KINDS } from "./review.ts";

export const WEBHOOK_PORT = 9443;
/** Below what a write of the operator's own waits for (kube/client.ts): where it has another name, it is asked about, too. */
const TIMEOUT_SECONDS = 10;

/** `serviceAccount` is the operator's, in `namespace`. */
export function webhookConfiguration(name: string, namespace: string, serviceAccount: string) {
  return {
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingWebhookConfiguration",
    metadata: { name: configurationName(name, namespace) },
    webhooks: Object.entries(KINDS).map(([path, { kind }]) => ({
      name: `v${kind.toLowerCase()}.kb.io`,
      admissionReviewVersions: ["v1"],
      clientConfig: { service: { name, namespace, path, port: 443 } },
      failurePolicy: "Fail",
      sideEffects: "None",
      timeoutSeconds: TIMEOUT_SECONDS,
      rules: [
        {
          apiGroups: ["ray.io"],
          apiVersions: ["v1"],
          operations: ["CREATE", "UPDATE"],
          resources: [`${kind.toLowerCase()}s`],
          scope: "Namespaced",
        },
      ],
      matchConditions: [
        {
          name: "not-by-the-operator",
          expression: `request.userInfo.username != "system:serviceaccount:${namespace}:${serviceAccount}"`,
        },
        { name: "not-being-deleted", expression: "!has(object.metadata.deletionTimestamp)" },
        { name: "spec-changes", expression: "oldObject == null || object.spec != oldObject.spec" },
      ],
    })),
  };
}
