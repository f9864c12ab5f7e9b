/**
 * Certificates that this program makes itself: of its own certificate authority for the webhook, and of the embedded
 * cluster's port. Node makes keys and signatures and reads certificates, but makes none.
 *
 * The few structures of X.509 that they take are written out here, and never read: of a certificate that is there already,
 * Node tells what is needed. Keys are ECDSA on P-256.
 */
import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from "node:crypto";

export interface Certificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

export interface CertificateRequest {
  readonly commonName: string;
  /** Milliseconds since the epoch; not after 2049. */
  readonly from: number;
  readonly until: number;
  readonly use: "authority" | "server" | "any";
  readonly dnsNames?: readonly string[];
  readonly addresses?: readonly string[];
}

const ECDSA_SHA256 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME = [0x55, 0x04, 0x03];
const SUBJECT_KEY_ID = [0x55, 0x1d, 0x0e];
const KEY_USAGE = [0x55, 0x1d, 0x0f];
const SUBJECT_ALT_NAME = [0x55, 0x1d, 0x11];
const BASIC_CONSTRAINTS = [0x55, 0x1d, 0x13];
const AUTHORITY_KEY_ID = [0x55, 0x1d, 0x23];
const EXTENDED_KEY_USAGE = [0x55, 0x1d, 0x25];
const SERVER_AUTH = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x01];
const [DIGITAL_SIGNATURE, CERT_SIGN_AND_DIGITAL_SIGNATURE] = [
  [0x07, 0x80],
  [0x02, 0x84],
];

/** A certificate with a new key, signed by `issuer`, or by itself when there is none. */
export function issue(request: CertificateRequest, issuer?: Certificate): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const signer = issuer && new X509Certificate(issuer.certificate);
  const issuerName = signer ? signer.subject.replace(/^CN=/, "") : request.commonName;
  const algorithm = sequence(der(0x06, ECDSA_SHA256));
  const body = sequence(
    der(0xa0, integer([2])),
    integer([0x01, ...randomBytes(15)]),
    algorithm,
    nameOf(issuerName),
    sequence(time(request.from), time(request.until)),
    nameOf(request.commonName),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions(request, publicKey, signer?.publicKey ?? publicKey))),
  );
  const signature = sign("sha256", body, issuer ? createPrivateKey(issuer.key) : privateKey);
  const whole = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const text = whole.toString("base64").replace(/.{64}(?=.)/g, "$&\n");
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

function extensions({ use, dnsNames = [], addresses = [] }: CertificateRequest, own: KeyObject, issuers: KeyObject) {
  const names = [
    ...addresses.map((address) => der(0x87, address.split(".").map(Number))),
    ...dnsNames.map((name) => der(0x82, Buffer.from(name))),
  ];
  const usage = use === "authority" ? CERT_SIGN_AND_DIGITAL_SIGNATURE : DIGITAL_SIGNATURE;
  return [
    extension(BASIC_CONSTRAINTS, sequence(...(use === "server" ? [] : [der(0x01, [0xff])])), true),
    // What is its own authority signs no other; the embedded cluster's is shown by both sides.
    ...(use === "any" ? [] : [extension(KEY_USAGE, der(0x03, usage), true)]),
    ...(use === "server" ? [extension(EXTENDED_KEY_USAGE, sequence(der(0x06, SERVER_AUTH)))] : []),
    extension(SUBJECT_KEY_ID, der(0x04, keyId(own))),
    // Which of two authorities of one name it was.
    extension(AUTHORITY_KEY_ID, sequence(der(0x80, keyId(issuers)))),
    ...(names.length > 0 ? [extension(SUBJECT_ALT_NAME, sequence(...names))] : []),
  ];
}

const keyId = (key: KeyObject): Buffer =>
  createHash("sha1")
    .update(key.export({ type: "spki", format: "der" }))
    .digest();

/** Tag, length, value. */
function der(tag: number, value: Buffer | readonly number[]): Buffer {
  const content = Buffer.from(value);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]) => der(0x30, Buffer.concat(parts));
const integer = (bytes: readonly number[]) => der(0x02, bytes);
const nameOf = (commonName: string) =>
  sequence(der(0x31, sequence(der(0x06, COMMON_NAME), der(0x0c, Buffer.from(commonName)))));
const extension = (id: readonly number[], value: Buffer, critical = false) =>
  sequence(der(0x06, id), ...(critical ? [der(0x01, [0xff])] : []), der(0x04, value));

function time(instant: number): Buffer {
  return der(0x17, Buffer.from(`${new Date(instant).toISOString().replace(/[-:T]/g, "").slice(2, 14)}Z`));
}
