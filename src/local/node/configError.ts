/** What a Pod refers to is missing or cannot be given: it waits, and is tried again, since it may yet come. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/** Data of the ConfigMaps and Secrets in a Pod's namespace; undefined for one that does not exist. */
export interface ConfigSource {
  configMap(name: string): Promise<Readonly<Record<string, Buffer>> | undefined>;
  secret(name: string): Promise<Readonly<Record<string, Buffer>> | undefined>;
}

/** The data of a ConfigMap or Secret; undefined when it is missing and may be. Throws ConfigError when it may not. */
export async function configData(
  source: ConfigSource,
  kind: "configMap" | "secret",
  name: string,
  optional: boolean | undefined,
): Promise<Readonly<Record<string, Buffer>> | undefined> {
  const data = await source[kind](name);
  if (data === undefined && !optional) throw new ConfigError(`${kind.toLowerCase()} "${name}" not found`);
  return data;
}
