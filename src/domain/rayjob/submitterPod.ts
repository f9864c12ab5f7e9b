/**
 * The submitter Job's Pod: `spec.submitterPodTemplate` where there is one, completed; else a small default.
 *
 * The template's first container is the submitter. Without a command it runs the operator's program, with one of its own
 * it is left as it is. Whoever manages quota counts what the template asks for, so resources are never added to one; what
 * merely makes it run (image, what pulls it, account, restart policy) is taken from where the default takes it.
 * May not: let a template say whose Pod it is.
 */
import type { PodSpec, PodTemplateSpec } from "../../api/kubernetes.ts";
import type { AttemptRecord, RayJobSpec } from "../../api/rayjob.ts";
import type { Settings } from "../settings.ts";
import { type Destination, imageOf, submitterContainer, withOwnCommand, withProgram } from "./program.ts";
import type { SubmitRequest } from "./ray.ts";

/** What marks a Pod as the attempt's submitter; no template overrides it. */
export interface Marks {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Whether the user's own command does the submitter's work. */
export const hasOwnCommand = ({ submitterPodTemplate }: Pick<RayJobSpec, "submitterPodTemplate">): boolean =>
  (submitterPodTemplate?.spec?.containers?.[0]?.command ?? []).length > 0;

export function submitterPod(
  template: PodTemplateSpec | undefined,
  marks: Marks,
  record: AttemptRecord,
  request: SubmitRequest,
  to: Destination,
  settings: Settings,
): PodTemplateSpec {
  const { metadata } = template ?? {};
  const spec: PodSpec = {
    ...accessOf(to.cluster.spec.headGroupSpec.template.spec),
    ...template?.spec,
    restartPolicy: template?.spec?.restartPolicy || "Never",
    containers: containers(template, record, request, to, settings),
  };
  return {
    metadata: {
      ...metadata,
      labels: { ...metadata?.labels, ...marks.labels },
      annotations: { ...metadata?.annotations, ...marks.annotations },
    },
    spec,
  };
}

/**
 * From the head's template come the image, what pulls it and the account; not its GPUs, selectors or mounts: the
 * submitter is small and may run anywhere.
 */
const accessOf = (head: PodSpec | undefined): Partial<PodSpec> => ({
  ...(head?.imagePullSecrets ? { imagePullSecrets: head.imagePullSecrets } : {}),
  ...(head?.serviceAccountName ? { serviceAccountName: head.serviceAccountName } : {}),
});

function containers(
  template: PodTemplateSpec | undefined,
  record: AttemptRecord,
  request: SubmitRequest,
  to: Destination,
  settings: Settings,
): PodSpec["containers"] {
  const ray = to.cluster.spec.headGroupSpec.template.spec?.containers?.[0];
  const [first, ...others] = template?.spec?.containers ?? [];
  if (!first) return [submitterContainer(record, request, to, settings)];
  const submitter = first.image ? first : { ...first, ...imageOf(ray) };
  return [
    hasOwnCommand({ submitterPodTemplate: template })
      ? withOwnCommand(submitter, record, to)
      : withProgram(submitter, record, request, to, settings),
    ...others,
  ];
}
