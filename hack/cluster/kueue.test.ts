import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { kueueImage } from "./images.js";
import { asHere, KUEUE_LABEL } from "./kueue.js";

const selector = { matchLabels: { [KUEUE_LABEL.key]: KUEUE_LABEL.value } };
const container = {
  name: "manager",
  image: "registry.example/kueue:main",
  imagePullPolicy: "Always",
  args: ["--config=/x"],
  resources: { requests: { cpu: "500m" } },
};
const manifests = [
  { kind: "Namespace", metadata: { name: "kueue-system" } },
  { kind: "APIService", metadata: { name: "v1beta2.visibility.kueue.x-k8s.io" } },
  {
    kind: "MutatingWebhookConfiguration",
    metadata: { name: "kueue" },
    webhooks: [
      { name: "mrayjob.kb.io", failurePolicy: "Fail" },
      { name: "mpod.kb.io", failurePolicy: "Fail", namespaceSelector: { matchExpressions: [] } },
    ],
  },
  {
    kind: "ConfigMap",
    metadata: { name: "kueue-manager-config" },
    data: { "controller_manager_config.yaml": "kind: Configuration\nintegrations:\n  frameworks: [ray.io/rayjob]\n" },
  },
  {
    kind: "Deployment",
    metadata: { name: "kueue-controller-manager" },
    spec: { replicas: 1, template: { metadata: {}, spec: { containers: [container] } } },
  },
];
// biome-ignore lint/suspicious/noExplicitAny: manifests are what they are
const made = (kind: string): any => asHere(manifests).find((object: { kind: string }) => object.kind === kind);

describe("Kueue on the one-node cluster", () => {
  it("asks about nothing, and manages nothing, outside of the namespaces with its label", () => {
    for (const hook of made("MutatingWebhookConfiguration").webhooks) {
      expect(hook).toMatchObject({ failurePolicy: "Fail", namespaceSelector: selector });
      expect(hook.namespaceSelector.matchExpressions).toBeUndefined();
    }
    expect(parse(made("ConfigMap").data["controller_manager_config.yaml"])).toMatchObject({
      integrations: { frameworks: ["ray.io/rayjob"] },
      managedJobsNamespaceSelector: selector,
    });
  });

  it("runs in the image that was made here, and takes nothing from the node's two cores for itself", () => {
    const [manager] = made("Deployment").spec.template.spec.containers;
    const { resources: _, ...rest } = container;
    expect(manager).toEqual({ ...rest, image: kueueImage.names[0], imagePullPolicy: "IfNotPresent" });
  });

  it("serves no API that could keep namespaces from being deleted", () => {
    expect(made("APIService")).toBeUndefined();
    expect(made("Namespace")).toEqual(manifests[0]);
  });
});
