import { KeyObject, randomBytes, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { loadedPart } from "../../../ground/base/index.ts";

export interface SelfSignedFiles {
  /** The leaf, then its authority. */
  readonly certificate: string;
  readonly key: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const hourMs = 3_600_000;
const yearMs = 365 * 24 * hourMs;

/** A serving certificate by an authority that exists for it alone: for those who don't check whom they speak to. */
export async function makeSelfSigned(host: string, nowMs: number): Promise<SelfSignedFiles> {
  // The library is large and needed once in the life of a node.
  await loadedPart(import("reflect-metadata"));
  const x509 = await loadedPart(import("@peculiar/x509"));
  const [authorityKeys, keys] = await Promise.all([generateKeys(), generateKeys()]);
  const seconds = Math.floor(nowMs / 1000);
  const validity = { notBefore: new Date(nowMs - hourMs), notAfter: new Date(nowMs + yearMs) };
  const { KeyUsageFlags } = x509;
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ CN: [`${host}-ca@${seconds}`] }],
    ...validity,
    keys: authorityKeys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const leaf = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [{ CN: [`${host}@${seconds}`] }],
    issuer: authority.subjectName,
    ...validity,
    publicKey: keys.publicKey,
    signingKey: authorityKeys.privateKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature | KeyUsageFlags.keyEncipherment, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension([{ type: isIP(host) === 0 ? "dns" : "ip", value: host }]),
      await x509.AuthorityKeyIdentifierExtension.create(authority),
    ],
  });
  return {
    certificate: [leaf, authority].map((certificate) => `${certificate.toString("pem").trim()}\n`).join(""),
    key: KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

function serialNumber(): string {
  // The first bit is clear, so that the number is positive.
  const bytes = randomBytes(16);
  bytes[0] = (bytes[0] ?? 0) & 0x7f;
  return bytes.toString("hex");
}
