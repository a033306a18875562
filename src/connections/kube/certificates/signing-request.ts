import { createPrivateKey, createPublicKey, KeyObject, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import { loadedPart } from "../../../ground/base/index.ts";
import type { CertificateTemplate } from "./facts.ts";

/** A PKCS#10 request, signed by the key it is for; both as PEM. */
export interface SigningRequest {
  readonly request: string;
  readonly key: string;
}

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** A new EC key on the curve that every TLS implementation knows. */
export async function makeKey(): Promise<string> {
  const { privateKey } = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  return KeyObject.from(privateKey).export({ type: "sec1", format: "pem" }).toString();
}

/** Asks for a certificate that names what the template says. */
export async function makeSigningRequest(template: CertificateTemplate, key: string): Promise<SigningRequest> {
  const x509 = await loadLibrary();
  const names = [...template.dnsNames, ...template.ips].map((value) => ({
    type: isIP(value) === 0 ? ("dns" as const) : ("ip" as const),
    value,
  }));
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [...template.organizations.map((name) => ({ O: [name] })), { CN: [template.commonName] }],
    keys: await keyPair(key),
    signingAlgorithm: algorithm,
    extensions: names.length === 0 ? [] : [new x509.SubjectAlternativeNameExtension(names)],
  });
  return { request: `${request.toString("pem").trim()}\n`, key };
}

/** Whether a request that is already there is by the same key for the same subject. */
export async function isSameRequest(request: string, ours: string): Promise<boolean> {
  const x509 = await loadLibrary();
  try {
    const [there, own] = [request, ours].map((text) => new x509.Pkcs10CertificateRequest(text));
    if (there === undefined || own === undefined || !(await there.verify())) return false;
    const sameKey = Buffer.from(there.publicKey.rawData).equals(Buffer.from(own.publicKey.rawData));
    return sameKey && there.subjectName.toString() === own.subjectName.toString();
  } catch {
    return false;
  }
}

/** The public half of a key as SubjectPublicKeyInfo in DER. */
export function publicKeyBytes(key: string): Buffer {
  return createPublicKey(createPrivateKey(key)).export({ type: "spki", format: "der" });
}

/** The library is large and needed only while a request is made. */
async function loadLibrary() {
  await loadedPart(import("reflect-metadata"));
  return await loadedPart(import("@peculiar/x509"));
}

async function keyPair(key: string): Promise<webcrypto.CryptoKeyPair> {
  const { subtle } = webcrypto;
  const secret = createPrivateKey(key).export({ type: "pkcs8", format: "der" });
  const [privateKey, publicKey] = await Promise.all([
    subtle.importKey("pkcs8", secret, algorithm, true, ["sign"]),
    subtle.importKey("spki", publicKeyBytes(key), algorithm, true, ["verify"]),
  ]);
  return { privateKey, publicKey };
}
