/**
 * The few objects that kubectl sends as Protocol Buffers, as `kubectl create configmap` does.
 *
 * Answers: the object as JSON. Throws 415 for a kind, or a field of one, that is not in the tables, since what cannot be
 * read must not be dropped in silence; `kubectl create -f` sends JSON and works for every kind.
 */
import { ApiError } from "./errors.ts";

type Kind =
  | "string"
  | "bytes"
  | "boolean"
  | "ignored"
  | { readonly map: "string" | "bytes" }
  | { readonly list: "string" }
  | Message;
/** Field number -> name and type, as in the API's generated.proto files. */
interface Message {
  readonly fields: Readonly<Record<number, readonly [name: string, type: Kind]>>;
}

const metadata: Message = {
  fields: {
    1: ["name", "string"],
    2: ["generateName", "string"],
    3: ["namespace", "string"],
    4: ["selfLink", "ignored"],
    5: ["uid", "string"],
    6: ["resourceVersion", "string"],
    7: ["generation", "ignored"],
    8: ["creationTimestamp", "ignored"],
    11: ["labels", { map: "string" }],
    12: ["annotations", { map: "string" }],
    14: ["finalizers", { list: "string" }],
  },
};
const kinds: Readonly<Record<string, Message>> = {
  ConfigMap: {
    fields: {
      1: ["metadata", metadata],
      2: ["data", { map: "string" }],
      3: ["binaryData", { map: "bytes" }],
      4: ["immutable", "boolean"],
    },
  },
  Secret: {
    fields: {
      1: ["metadata", metadata],
      2: ["data", { map: "bytes" }],
      3: ["type", "string"],
      4: ["stringData", { map: "string" }],
      5: ["immutable", "boolean"],
    },
  },
  Namespace: { fields: { 1: ["metadata", metadata], 2: ["spec", "ignored"], 3: ["status", "ignored"] } },
  ServiceAccount: { fields: { 1: ["metadata", metadata], 4: ["automountServiceAccountToken", "boolean"] } },
  // Every review is answered alike.
  SelfSubjectAccessReview: { fields: { 1: ["metadata", metadata], 2: ["spec", "ignored"], 3: ["status", "ignored"] } },
};
/** The envelope: type, and the object's own bytes. */
const envelope: Message = {
  fields: {
    1: ["type", { fields: { 1: ["apiVersion", "string"], 2: ["kind", "string"] } }],
    2: ["raw", "bytes"],
    3: ["contentEncoding", "ignored"],
    4: ["contentType", "ignored"],
  },
};

const unreadable = (what: string) =>
  new ApiError(
    415,
    "UnsupportedMediaType",
    `the embedded cluster reads JSON and YAML, and ${what} came as Protocol Buffers; use \`kubectl create -f\` with a file`,
  );

/** Reads an object in the API server's envelope. */
export function fromProtobuf(body: Buffer): unknown {
  if (body.subarray(0, 4).toString("latin1") !== "k8s\0") throw unreadable("the body");
  const { type, raw = "" } = read(body.subarray(4), envelope, "the body") as {
    type?: { apiVersion?: string; kind?: string };
    raw?: string;
  };
  const message = kinds[type?.kind ?? ""];
  if (!message) throw unreadable(type?.kind ?? "the body");
  return { ...type, ...read(Buffer.from(raw, "base64"), message, type!.kind!) };
}

function read(bytes: Buffer, message: Message, what: string): Record<string, unknown> {
  const object: Record<string, unknown> = {};
  for (const [number, value] of fields(bytes, what)) {
    const [name, type] = message.fields[number] ?? [];
    if (name === undefined || type === undefined) throw unreadable(`field ${number} of ${what}`);
    if (type === "ignored") continue;
    if (type === "boolean") object[name] = value !== 0;
    else if (typeof value === "number") throw unreadable(`${what}.${name}`);
    else if (type === "string") {
      // Go writes out empty texts, too; they mean that nothing was said.
      if (value.length > 0) object[name] = value.toString();
    } else if (type === "bytes") object[name] = value.toString("base64");
    else if ("list" in type) object[name] = [...((object[name] as string[]) ?? []), value.toString()];
    else if ("map" in type) object[name] = { ...(object[name] as object), ...entry(value, type.map, what) };
    else object[name] = read(value, type, `${what}.${name}`);
  }
  return object;
}

function entry(bytes: Buffer, type: "string" | "bytes", what: string): Record<string, string> {
  let [key, text] = ["", ""];
  for (const [number, value] of fields(bytes, what)) {
    if (typeof value === "number") throw unreadable(`a map in ${what}`);
    if (number === 1) key = value.toString();
    else text = value.toString(type === "bytes" ? "base64" : "utf8");
  }
  return { [key]: text };
}

/** The fields of a message: numbers, and pieces of known length; other encodings do not occur here. */
function* fields(bytes: Buffer, what: string): Iterable<[number: number, value: number | Buffer]> {
  let at = 0;
  const number = (): number => {
    let [value, factor] = [0, 1];
    for (; at < bytes.length; factor *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
    throw unreadable(`a cut-off ${what}`);
  };
  while (at < bytes.length) {
    const tag = number();
    const value = number();
    if ((tag & 7) === 0) yield [tag >> 3, value];
    else if ((tag & 7) === 2 && at + value <= bytes.length) {
      yield [tag >> 3, bytes.subarray(at, at + value)];
      at += value;
    } else throw unreadable(`a cut-off ${what}`);
  }
}
