/**
 * The variables and the command of a container, as kubelet works them out.
 *
 * Nothing of the machine's own environment comes in: what an image would define is `imageEnvironment`.
 */
import type { Container, EnvVar, Pod } from "../../api/kubernetes.ts";
import { ConfigError, type ConfigSource, configData } from "./configError.ts";
import { expand } from "./expand.ts";
import { fieldValue, type PodFacts, resourceValue } from "./fields.ts";

export type Environment = Readonly<Record<string, string>>;

/**
 * The container's variables: the image's, then `envFrom`, then `env` in order, a later one winning.
 *
 * A value refers to entries of `env` before it only; `envFrom` is visible to the command alone, as in kubelet.
 * Throws ConfigError when something referred to is missing.
 */
export async function containerEnvironment(
  container: Container,
  pod: Pod,
  facts: PodFacts,
  source: ConfigSource,
  imageEnvironment: Environment,
): Promise<Environment> {
  const environment: Record<string, string> = { ...imageEnvironment, HOSTNAME: pod.metadata.name ?? "" };
  for (const from of container.envFrom ?? []) {
    const kind = from.secretRef ? "secret" : "configMap";
    const reference = from.secretRef ?? from.configMapRef;
    if (!reference?.name) continue;
    const data = await configData(source, kind, reference.name, reference.optional);
    for (const [key, value] of Object.entries(data ?? {})) environment[(from.prefix ?? "") + key] = value.toString();
  }
  const earlier: Record<string, string> = {};
  for (const variable of container.env ?? []) {
    const value = variable.valueFrom
      ? await referredValue(variable, container, pod, facts, source)
      : expand(variable.value ?? "", (name) => earlier[name]);
    if (value === undefined) continue;
    earlier[variable.name] = value;
    environment[variable.name] = value;
  }
  return environment;
}

/** Undefined: it is optional and not there. */
async function referredValue(
  { name, valueFrom }: EnvVar,
  container: Container,
  pod: Pod,
  facts: PodFacts,
  source: ConfigSource,
): Promise<string | undefined> {
  if (valueFrom?.fieldRef) return fieldValue(valueFrom.fieldRef.fieldPath, pod, facts);
  if (valueFrom?.resourceFieldRef) {
    const other = valueFrom.resourceFieldRef.containerName;
    const of = other ? pod.spec?.containers.find((candidate) => candidate.name === other) : container;
    return resourceValue(valueFrom.resourceFieldRef, of, facts);
  }
  const kind = valueFrom?.secretKeyRef ? "secret" : "configMap";
  const reference = valueFrom?.secretKeyRef ?? valueFrom?.configMapKeyRef;
  if (!reference?.name) throw new ConfigError(`variable ${name} has a source that the local node cannot give`);
  const data = await configData(source, kind, reference.name, reference.optional);
  const value = data?.[reference.key];
  if (value === undefined && data !== undefined && !reference.optional) {
    throw new ConfigError(
      `couldn't find key ${reference.key} in ${kind === "secret" ? "Secret" : "ConfigMap"} ${pod.metadata.namespace}/${reference.name}`,
    );
  }
  return value?.toString();
}

/** Command and arguments with references put in. An image of Ray has no entrypoint, and its command is `/bin/bash`. */
export function commandLine(container: Container, environment: Environment): string[] {
  const put = (text: string) => expand(text, (name) => environment[name]);
  const words = [...(container.command ?? []), ...(container.args ?? [])].map(put);
  return words.length > 0 ? words : ["/bin/bash"];
}
