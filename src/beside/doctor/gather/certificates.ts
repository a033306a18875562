import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { join, resolve } from "node:path";
import type { ClusterAccess } from "../../../connections/kube/index.ts";
import { hasCode, isMissing, messageOf } from "../../../ground/base/index.ts";
import { type ConfigFacts, settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import type { FileFact } from "./files.ts";
import { readKubeconfig } from "./kubeconfig.ts";

export type UseOfCertificate = "authorities of clients" | "client" | "serving" | "authority of the API server";

/** A certificate that the node uses. */
export interface CertificateFact {
  readonly use: UseOfCertificate;
  /** The file, or words for data that stands in a kubeconfig. */
  readonly where: string;
  /** Undefined: it stands in a kubeconfig. */
  readonly file: FileFact | undefined;
  readonly content: CertificateContent;
}

export type CertificateContent =
  | { readonly state: "absent" }
  | { readonly state: "unreadable"; readonly problem: string }
  | { readonly state: "unusable"; readonly problem: string }
  | {
      readonly state: "usable";
      /** All that stand there; of a chain the first is the leaf. */
      readonly certificates: readonly CertificateDates[];
      readonly key: KeyState;
    };

export interface CertificateDates {
  readonly subject: string;
  readonly issuer: string;
  /** Signed by nobody but itself, or by an authority that stands in the same file. */
  readonly isSelfSigned: boolean;
  readonly notBefore: number;
  readonly notAfter: number;
  /** DNS names and addresses it is valid for. */
  readonly names: readonly string[];
}

/** `none`: no key is expected. `unreadable`: others may be able to read it. */
export type KeyState =
  | { readonly state: "none" }
  | { readonly state: "matches" | "other"; readonly file: FileFact | undefined }
  | { readonly state: "unusable" | "unreadable"; readonly file: FileFact | undefined; readonly problem: string };

const certificateBlock = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
const keyBlock = /-----BEGIN ([A-Z]+ )?PRIVATE KEY-----[^-]+-----END ([A-Z]+ )?PRIVATE KEY-----/;
const mostCertificates = 500;

export async function gatherCertificates(world: ExaminedWorld, need: NeedFact): Promise<readonly CertificateFact[]> {
  const config = await need("config");
  const found: CertificateFact[] = [];
  const clientCa = settingText(config, "authentication.x509.clientCAFile");
  if (clientCa !== "") found.push(await inFile(world, "authorities of clients", resolve(world.cwd, clientCa)));
  found.push(...(await ofKubeconfig(world, config)));
  const serving = servingPair(config);
  if (serving !== undefined) found.push(await inFile(world, "serving", serving.certificate, serving.key));
  return found;
}

/** The files that the node API is served with; undefined: it is not served. */
function servingPair(config: ConfigFacts): { readonly certificate: string; readonly key: string } | undefined {
  if (settingText(config, "enableServer") === "false") return undefined;
  const [certificate, key] = [settingText(config, "tlsCertFile"), settingText(config, "tlsPrivateKeyFile")];
  const { certDir } = config.report;
  if (settingText(config, "serverTLSBootstrap") === "true") {
    const current = join(certDir, "kubelet-server-current.pem");
    return { certificate: current, key: current };
  }
  if (certificate !== "") return { certificate, key };
  return { certificate: join(certDir, "kubelet.crt"), key: join(certDir, "kubelet.key") };
}

async function ofKubeconfig(world: ExaminedWorld, config: ConfigFacts): Promise<readonly CertificateFact[]> {
  const path = settingText(config, "--kubeconfig");
  if (path === "") return [];
  let access: ClusterAccess | undefined;
  try {
    access = await readKubeconfig(world, resolve(world.cwd, path));
  } catch (error) {
    // What is wrong with its content is told by the group api.
    if (!hasCode(error, "EACCES", "EPERM")) return [];
    const file = await world.files.fact(path);
    return [{ use: "client", where: path, file, content: { state: "unreadable", problem: messageOf(error) } }];
  }
  if (access === undefined) return [];
  const found: CertificateFact[] = [];
  const { certificate: pair } = access.user;
  if (pair !== undefined) {
    const { certificate, key } = pair;
    if (certificate.type === "file" && key.type === "file") {
      found.push(await inFile(world, "client", certificate.path, key.path));
    } else if (certificate.type === "data" && key.type === "data") {
      const content = contentOf(certificate.data.toString(), { text: key.data.toString(), file: undefined });
      found.push({ use: "client", where: `${access.file} (its own data)`, file: undefined, content });
    }
  }
  if (access.trust.type === "authority") {
    const { certificates } = access.trust;
    const use = "authority of the API server";
    if (certificates.type === "file") found.push(await inFile(world, use, certificates.path));
    else {
      const content = contentOf(certificates.data.toString(), undefined);
      found.push({ use, where: `${access.file} (its own data)`, file: undefined, content });
    }
  }
  return found;
}

async function inFile(
  world: ExaminedWorld,
  use: UseOfCertificate,
  path: string,
  keyPath?: string,
): Promise<CertificateFact> {
  const file = await world.files.fact(path);
  const fact = (content: CertificateContent): CertificateFact => ({ use, where: path, file, content });
  try {
    const pem = await world.files.textIfThere(path, 1024 * 1024);
    if (pem === undefined) return fact({ state: "absent" });
    if (keyPath === undefined) return fact(contentOf(pem, undefined));
    const keyFile = await world.files.fact(keyPath);
    const key = keyPath === path ? { text: pem } : await readKey(world, keyPath);
    return fact(contentOf(pem, { ...key, file: keyFile }));
  } catch (error) {
    return fact({ state: "unreadable", problem: messageOf(error) });
  }
}

type KeyText = { readonly text: string | undefined } | { readonly problem: string };

async function readKey({ files }: ExaminedWorld, path: string): Promise<KeyText> {
  try {
    return { text: await files.text(path) };
  } catch (error) {
    return isMissing(error) ? { text: undefined } : { problem: messageOf(error) };
  }
}

type KeyFound = KeyText & { readonly file: FileFact | undefined };

function contentOf(pem: string, key: KeyFound | undefined): CertificateContent {
  const blocks = (pem.match(certificateBlock) ?? []).slice(0, mostCertificates);
  try {
    const parsed = blocks.map((block) => new X509Certificate(block));
    const [leaf] = parsed;
    if (leaf === undefined) return { state: "unusable", problem: "it holds no certificate" };
    const certificates = parsed.map((certificate) => datesOf(certificate, parsed));
    return { state: "usable", certificates, key: key === undefined ? { state: "none" } : keyState(leaf, key) };
  } catch (error) {
    return { state: "unusable", problem: messageOf(error) };
  }
}

/** An authority that is delivered with its only certificate proves nothing; the agent makes such a pair when it has none. */
function datesOf(certificate: X509Certificate, all: readonly X509Certificate[]): CertificateDates {
  const isByNeighbour = all.some(
    (other) => other !== certificate && certificate.checkIssued(other) && other.checkIssued(other),
  );
  return {
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    isSelfSigned: certificate.checkIssued(certificate) || isByNeighbour,
    notBefore: Date.parse(certificate.validFrom),
    notAfter: Date.parse(certificate.validTo),
    names: (certificate.subjectAltName ?? "").split(", ").map((name) => name.replace(/^[^:]*:/, "")),
  };
}

function oneLine(name: string | undefined): string {
  return (name ?? "").split("\n").reverse().join(", ");
}

function keyState(leaf: X509Certificate, found: KeyFound): KeyState {
  const { file } = found;
  if ("problem" in found) return { state: "unreadable", file, problem: found.problem };
  const block = keyBlock.exec(found.text ?? "")?.[0];
  if (block === undefined) return { state: "unusable", file, problem: "no private key could be read there" };
  let key: KeyObject;
  try {
    key = createPrivateKey(block);
  } catch (error) {
    return { state: "unusable", file, problem: messageOf(error) };
  }
  return { state: leaf.checkPrivateKey(key) ? "matches" : "other", file };
}
