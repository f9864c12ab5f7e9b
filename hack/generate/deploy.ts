/**
 * What is installed, as objects: from here come the kustomize bases, the plain manifest, and the parts of the chart that
 * must not differ from them (its roles, its CRDs, its version).
 *
 * Next: src/permissions.ts has the rights and their reasons; deploy/helm/raykeeper/values.yaml what the chart leaves to choose.
 */
import { stringify } from "yaml";
import {
  crdPermissions,
  leaderElectionPermissions,
  operatorPermissions,
  type Permission,
  type PolicyRule,
  rule,
  userPermissions,
  WEBHOOK,
  webhookConfigurationPermissions,
  webhookPermissions,
} from "../../src/permissions.ts";
import { VERSION } from "../../src/shipped.ts";
import { webhookConfiguration } from "../../src/webhook/configuration.ts";
import { refusals } from "./refusals.ts";

/** KubeRay's name, so that who looks for the operator finds it, and two of them cannot stand side by side unnoticed. */
const NAME = "kuberay-operator";
/** KubeRay's kustomize bases go there, too. */
const NAMESPACE = "default";
const IMAGE = "docker.io/raykeeper/raykeeper";
const LABELS = { "app.kubernetes.io/name": "kuberay", "app.kubernetes.io/component": NAME };
const RBAC = "rbac.authorization.k8s.io";

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: object };
  readonly [field: string]: unknown;
}

const labelled = (name: string) => ({ name, labels: LABELS });
const always = (permissions: readonly Permission[]) => permissions.filter(({ when }) => when === undefined).map(rule);

function role(kind: "Role" | "ClusterRole", name: string, rules: readonly PolicyRule[]): Manifest {
  return { apiVersion: `${RBAC}/v1`, kind, metadata: labelled(name), rules };
}

/** The operator's ServiceAccount is bound to the role of the same name. */
function binding(kind: "Role" | "ClusterRole", name: string): Manifest {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata: labelled(name),
    roleRef: { apiGroup: RBAC, kind, name },
    // kustomize puts its own namespace here, as it knows the ServiceAccount.
    subjects: [{ kind: "ServiceAccount", name: NAME, namespace: NAMESPACE }],
  };
}

const serviceAccount: Manifest = { apiVersion: "v1", kind: "ServiceAccount", metadata: labelled(NAME) };

const leaderElection = [
  role("Role", `${NAME}-leader-election`, leaderElectionPermissions.map(rule)),
  binding("Role", `${NAME}-leader-election`),
];

const userRoles = Object.entries(userPermissions).map(([name, permissions]) =>
  role("ClusterRole", name, permissions.map(rule)),
);

const probe = (path: string) => ({
  httpGet: { path, port: "probes" },
  initialDelaySeconds: 10,
  periodSeconds: 5,
  timeoutSeconds: 5,
  failureThreshold: 5,
});

const deployment: Manifest = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: labelled(NAME),
  spec: {
    replicas: 1,
    // The one that goes gives its lease back before the next one asks for it.
    strategy: { type: "Recreate" },
    selector: { matchLabels: LABELS },
    template: {
      metadata: { labels: LABELS },
      spec: {
        serviceAccountName: NAME,
        terminationGracePeriodSeconds: 30,
        containers: [
          {
            name: NAME,
            image: `${IMAGE}:${VERSION}`,
            imagePullPolicy: "IfNotPresent",
            command: ["/manager"],
            args: ["--enable-metrics=true"],
            ports: [
              { name: "http", containerPort: 8080, protocol: "TCP" },
              { name: "probes", containerPort: 8082, protocol: "TCP" },
            ],
            livenessProbe: probe("/healthz"),
            readinessProbe: probe("/readyz"),
            resources: { requests: { cpu: "100m" }, limits: { cpu: "1", memory: "512Mi" } },
            securityContext: {
              allowPrivilegeEscalation: false,
              readOnlyRootFilesystem: true,
              capabilities: { drop: ["ALL"] },
              runAsNonRoot: true,
              seccompProfile: { type: "RuntimeDefault" },
            },
          },
        ],
      },
    },
  },
};

const service: Manifest = {
  apiVersion: "v1",
  kind: "Service",
  metadata: labelled(NAME),
  spec: {
    type: "ClusterIP",
    selector: LABELS,
    ports: [{ name: "http", port: 8080, targetPort: "http", protocol: "TCP" }],
  },
};

const rbac: Readonly<Record<string, readonly Manifest[]>> = {
  service_account: [serviceAccount],
  role: [role("ClusterRole", NAME, always(operatorPermissions)), binding("ClusterRole", NAME)],
  leader_election: leaderElection,
  user_roles: userRoles,
};
const rbacOfOneNamespace: Readonly<Record<string, readonly Manifest[]>> = {
  service_account: [serviceAccount],
  role: [role("Role", NAME, always(operatorPermissions)), binding("Role", NAME)],
  leader_election: leaderElection,
};

/** KubeRay's base with webhooks goes there. */
const WEBHOOK_NAMESPACE = "ray-system";
const CONFIGURATION = webhookConfiguration(WEBHOOK, WEBHOOK_NAMESPACE, NAME);

const webhook: Readonly<Record<string, readonly Manifest[]>> = {
  service: [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: labelled(WEBHOOK),
      spec: {
        selector: LABELS,
        ports: [{ name: "webhook", port: 443, targetPort: "webhook", protocol: "TCP" }],
      },
    },
  ],
  configuration: [{ ...CONFIGURATION, metadata: labelled(CONFIGURATION.metadata.name) }],
  role: [
    role("Role", WEBHOOK, webhookPermissions.map(rule)),
    binding("Role", WEBHOOK),
    role("ClusterRole", WEBHOOK, webhookConfigurationPermissions(WEBHOOK_NAMESPACE).map(rule)),
    binding("ClusterRole", WEBHOOK),
  ],
};

const NOTE = "# Made by `npm run generate` from hack/generate/deploy.ts. Do not edit.\n";
const yaml = (value: unknown) => stringify(value, { aliasDuplicateObjects: false, lineWidth: 120 });
const documents = (objects: readonly Manifest[]) => objects.map(yaml).join("---\n");
const kustomization = (fields: object, kind = "Kustomization") =>
  `${NOTE}${yaml({ apiVersion: `kustomize.config.k8s.io/${kind === "Kustomization" ? "v1beta1" : "v1alpha1"}`, kind, ...fields })}`;

/** Where something is looked up in the cluster, its namespace stands beside it. */
const placed = (object: Manifest): Manifest => {
  if (object.kind.startsWith("Cluster")) return object;
  const { name, ...metadata } = object.metadata;
  return { ...object, metadata: { name, namespace: NAMESPACE, ...metadata } };
};

/** By path in the repository; `crds` are the CRDs' files, by name. */
export function deployFiles(crds: ReadonlyMap<string, string>): Map<string, string> {
  const files = new Map<string, string>();
  const folder = (path: string, contents: Readonly<Record<string, readonly Manifest[]>>) => {
    for (const [name, objects] of Object.entries(contents))
      files.set(`${path}/${name}.yaml`, NOTE + documents(objects));
    files.set(
      `${path}/kustomization.yaml`,
      kustomization({ resources: Object.keys(contents).map((name) => `${name}.yaml`) }),
    );
  };
  // A name without an ending: `kubectl create -f deploy/crds` passes it over, kustomize does not.
  files.set("deploy/crds/Kustomization", kustomization({ resources: [...crds.keys()] }));
  files.set("deploy/kustomize/crd/kustomization.yaml", kustomization({ resources: ["../../crds"] }));
  folder("deploy/kustomize/rbac", rbac);
  folder("deploy/kustomize/rbac-one-namespace", rbacOfOneNamespace);
  folder("deploy/kustomize/manager", { manager: [deployment], service: [service] });
  const bases = ["../crd", "../rbac", "../manager"];
  files.set("deploy/kustomize/default/kustomization.yaml", kustomization({ namespace: NAMESPACE, resources: bases }));
  files.set(
    "deploy/kustomize/one-namespace/kustomization.yaml",
    kustomization({
      namespace: NAMESPACE,
      resources: ["../rbac-one-namespace", "../manager"],
      patches: [{ path: "watch_own_namespace.yaml" }],
    }),
  );
  files.set("deploy/kustomize/one-namespace/watch_own_namespace.yaml", NOTE + yaml(watchOwnNamespace));
  folder("deploy/kustomize/webhook", webhook);
  const withWebhooks = "deploy/kustomize/default-with-webhooks";
  files.set(
    `${withWebhooks}/kustomization.yaml`,
    kustomization({
      namespace: WEBHOOK_NAMESPACE,
      resources: ["namespace.yaml", ...bases, "../webhook"],
      patches: [{ path: "serve_webhooks.yaml" }],
    }),
  );
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: WEBHOOK_NAMESPACE } };
  files.set(`${withWebhooks}/namespace.yaml`, NOTE + yaml(namespace));
  files.set(`${withWebhooks}/serve_webhooks.yaml`, NOTE + yaml(serveWebhooks));
  const everything = [...Object.values(rbac).flat(), deployment, service].map(placed);
  files.set(
    "deploy/raykeeper.yaml",
    `${NOTE}${[...crds.values()].map(bare).join("---\n")}---\n${documents(everything)}`,
  );

  files.set("docs/permissions.md", permissionsPage());

  const chart = "deploy/helm/raykeeper";
  for (const [name, text] of crds) files.set(`${chart}/crds/${name}`, text);
  files.set(`${chart}/Chart.yaml`, NOTE + yaml(chartYaml));
  files.set(`${chart}/templates/_generated.tpl`, templates());
  return files;
}

const bare = (file: string) => file.replace(/^(#.*\n|---\n)+/, "");

const watchOwnNamespace = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: NAME },
  spec: {
    template: {
      spec: {
        containers: [
          {
            name: NAME,
            args: ["--enable-metrics=true", "--watch-namespace=$(POD_NAMESPACE)"],
            env: [{ name: "POD_NAMESPACE", valueFrom: { fieldRef: { fieldPath: "metadata.namespace" } } }],
          },
        ],
      },
    },
  },
};

const serveWebhooks = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: NAME },
  spec: {
    // The webhook fails closed, so one replica is there before another goes.
    strategy: { $patch: "replace", type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0 } },
    template: {
      spec: {
        containers: [
          {
            name: NAME,
            ports: [{ name: "webhook", containerPort: 9443, protocol: "TCP" }],
            env: [{ name: "ENABLE_WEBHOOKS", value: "true" }],
          },
        ],
      },
    },
  },
};

const chartYaml = {
  apiVersion: "v2",
  name: "raykeeper",
  description:
    "An operator for Ray jobs on Kubernetes: KubeRay's RayJob and RayCluster, whose jobs are neither lost nor run twice.",
  type: "application",
  version: VERSION,
  appVersion: VERSION,
  kubeVersion: ">=1.30.0-0",
  keywords: ["ray", "rayjob", "raycluster", "kuberay", "operator"],
};

const HERE = "NAMESPACE";
const ACCOUNT = "ACCOUNT";
const WATCHED = "WATCHED";
/** With the chart's names in the place of ours. */
const named = (text: string) =>
  text
    .replaceAll(WEBHOOK, '{{ include "raykeeper.webhook" . }}')
    .replaceAll(HERE, "{{ .Release.Namespace }}")
    .replaceAll(ACCOUNT, '{{ include "raykeeper.serviceAccount" . }}')
    .replaceAll(WATCHED, '{{ include "raykeeper.webhook.namespaces" . }}');

/** Named templates of the chart. */
function templates(): string {
  const define = (name: string, body: string) => `{{- define "raykeeper.${name}" -}}\n${body}{{- end }}\n`;
  const optional = [...new Set(operatorPermissions.map(({ when }) => when).filter((when) => when !== undefined))];
  const webhooks = webhookConfiguration(WEBHOOK, HERE, ACCOUNT).webhooks.map((one) => ({
    ...one,
    namespaceSelector: WATCHED,
  }));
  const operatorRules =
    yaml(always(operatorPermissions)) +
    optional
      .map((when) => {
        const rules = operatorPermissions.filter((permission) => permission.when === when).map(rule);
        return `{{- if .Values.${when} }}\n${yaml(rules)}{{- end }}\n`;
      })
      .join("");
  return [
    "{{- /* Made by `npm run generate` from hack/generate/deploy.ts. Do not edit. */ -}}\n",
    define("operatorRules", operatorRules),
    define("leaderElectionRules", yaml(leaderElectionPermissions.map(rule))),
    define("webhookRules", named(yaml(webhookPermissions.map(rule)))),
    define("webhookConfigurationRules", named(yaml(webhookConfigurationPermissions(HERE).map(rule)))),
    define("webhooks", named(yaml(webhooks))),
    define("crdRules", yaml(crdPermissions.map(rule))),
    define(
      "userRoles",
      yaml(
        Object.fromEntries(Object.entries(userPermissions).map(([name, permissions]) => [name, permissions.map(rule)])),
      ),
    ),
    define("refused", yaml(refusals())),
  ].join("");
}

function permissionsPage(): string {
  const table = (permissions: readonly Permission[]) =>
    [
      "| group | resource | verbs | why |",
      "|---|---|---|---|",
      ...permissions.map(({ group, resource, verbs, names, why, when, unseen }) => {
        const only = names ? ` (only ${names.join(", ")})` : "";
        const notes = [why, when && `only with \`${when}\``, unseen && `(not seen in tests: ${unseen})`];
        const cells = [group || "core", `\`${resource}\`${only}`, verbs.join(", "), notes.filter(Boolean).join("; ")];
        return `| ${cells.join(" | ")} |`;
      }),
      "",
    ].join("\n");
  return `<!-- Made by \`npm run generate\` from src/permissions.ts. Do not edit. -->
# What the operator may do

Chart, kustomize bases and plain manifest grant these rights and no others. The tests on a real API server run the
operator with exactly them: what is denied to it fails a test, and so does a right that is not used.

In each namespace whose RayJobs and RayClusters it cares for (all of them, or those of \`watchNamespace\` with
\`singleNamespaceInstall\`):

${table(operatorPermissions)}
In its own namespace:

${table(leaderElectionPermissions)}
With the webhook (\`webhook.enabled\`), in its own namespace, unless its certificate is made by somebody else:

${table(webhookPermissions)}
and cluster-wide, since the object is:

${table(webhookConfigurationPermissions("NAMESPACE"))}
Of the chart's Job that brings the CRDs up to date, which has a ServiceAccount of its own (\`crds.apply\`):

${table(crdPermissions)}
Beyond these, every ServiceAccount may read the API server's version and its OpenAPI documents; the operator reads there
whether the CRDs keep what it writes down.
`;
}
