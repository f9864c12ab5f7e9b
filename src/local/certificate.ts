/**
 * A certificate for the embedded cluster's port on the loopback, which every user of the machine can reach.
 *
 * One self-signed certificate serves both sides: the server shows it, and lets in only who shows it as well. It exists
 * in the kubeconfig alone, whose mode keeps others out. (A token would not do: kubectl sends none without TLS.)
 * The few structures of X.509 that this takes are written out here; Node makes keys and signatures, but no certificates.
 */
import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

export interface Certificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

const ECDSA_SHA256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME = [0x55, 0x04, 0x03];
const BASIC_CONSTRAINTS = [0x55, 0x1d, 0x13];
const SUBJECT_ALT_NAME = [0x55, 0x1d, 0x11];

/** For 127.0.0.1 and localhost, from a day before `now` on for five years. */
export function selfSigned(now: number): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const algorithm = sequence(der(0x06, ECDSA_SHA256));
  const name = sequence(der(0x31, sequence(der(0x06, COMMON_NAME), der(0x0c, Buffer.from("raykeeper local cluster")))));
  const day = 86_400_000;
  const body = sequence(
    der(0xa0, integer([2])),
    integer([0x01, ...randomBytes(15)]),
    algorithm,
    name,
    sequence(time(now - day), time(now + 5 * 365 * day)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    der(
      0xa3,
      sequence(
        extension(BASIC_CONSTRAINTS, sequence(der(0x01, [0xff]))),
        extension(SUBJECT_ALT_NAME, sequence(der(0x87, [127, 0, 0, 1]), der(0x82, Buffer.from("localhost")))),
      ),
    ),
  );
  const signature = sign("sha256", body, privateKey);
  const whole = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const text = whole.toString("base64").replace(/.{64}(?=.)/g, "$&\n");
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** Tag, length, value. */
function der(tag: number, value: Buffer | readonly number[]): Buffer {
  const content = Buffer.from(value);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]) => der(0x30, Buffer.concat(parts));
const integer = (bytes: readonly number[]) => der(0x02, bytes);
const extension = (id: readonly number[], value: Buffer) => sequence(der(0x06, id), der(0x04, value));

function time(instant: number): Buffer {
  return der(0x17, Buffer.from(`${new Date(instant).toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));
}
