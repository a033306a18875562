import { X509Certificate } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { createSecureContext } from "node:tls";
import {
  type Clock,
  codeOf,
  isShortage,
  type Logger,
  loadedPart,
  messageOf,
  saveFile,
} from "../../../ground/base/index.ts";
import { type ClusterAccess, LiveMaterial, loadKubeconfig } from "../access/index.ts";
import { certificatesIn } from "./facts.ts";

/** Whether the file names a client certificate that is still valid. Rejects when that can't be told. */
export async function hasValidCertificate(file: string, ports: { readonly clock: Clock; readonly log: Logger }) {
  const { clock, log } = ports;
  let why: string;
  try {
    why = await problemOf(await loadKubeconfig(file), clock);
  } catch (error) {
    const code = error instanceof Error ? codeOf(error.cause) : undefined;
    if (isShortage(error) || (code !== undefined && code !== "ENOENT")) throw error;
    why = messageOf(error);
  }
  if (why !== "") log.info("The kubeconfig can't be used as it is; bootstrapping", { file, why });
  return why === "";
}

async function problemOf({ user }: ClusterAccess, clock: Clock): Promise<string> {
  if (user.certificate === undefined) return "it has no client certificate";
  try {
    const [cert, key] = await Promise.all([
      new LiveMaterial(user.certificate.certificate, clock).read(),
      new LiveMaterial(user.certificate.key, clock).read(),
    ]);
    createSecureContext({ cert, key });
    const expired = certificatesIn(cert.toString()).some(
      (certificate) => Date.parse(new X509Certificate(certificate).validTo) <= clock.now(),
    );
    return expired ? "its client certificate has expired" : "";
  } catch (error) {
    if (isShortage(error)) throw error;
    return `its client certificate can't be read: ${messageOf(error)}`;
  }
}

/** Writes a kubeconfig for the same server as `access`, with the certificate and key that stand in one file. */
export async function writeKubeconfig(file: string, access: ClusterAccess, pemFile: string): Promise<void> {
  const { stringify } = await loadedPart(import("yaml"));
  const { trust } = access;
  const authority = trust.type === "authority" ? trust.certificates : undefined;
  const cluster = {
    ...(authority?.type === "data" && { "certificate-authority-data": authority.data.toString("base64") }),
    ...(authority?.type === "file" && { "certificate-authority": authority.path }),
    ...(trust.type === "anyone" && { "insecure-skip-tls-verify": true }),
    ...(access.proxyUrl !== undefined && { "proxy-url": access.proxyUrl.href }),
    server: access.server.href.replace(/\/$/, ""),
    ...(access.tlsServerName !== "" && { "tls-server-name": access.tlsServerName }),
  };
  const text = stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default-cluster", cluster }],
    users: [{ name: "default-auth", user: { "client-certificate": pemFile, "client-key": pemFile } }],
    contexts: [
      {
        name: "default-context",
        context: { cluster: "default-cluster", namespace: "default", user: "default-auth" },
      },
    ],
    "current-context": "default-context",
  });
  await mkdir(dirname(file), { recursive: true, mode: 0o755 });
  await saveFile(file, text, 0o600);
}
