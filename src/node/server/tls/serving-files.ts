import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, hasCode, type Logger, saveFile } from "../../../ground/base/index.ts";
import { makeSelfSigned } from "./self-signed.ts";

export interface ServingFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface ServingSettings {
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  readonly certDir: string;
  /** What the certificate is made for when none is given. */
  readonly hostName: string;
}

/** The files that are configured, or those that an earlier start has made, or new ones. */
export async function servingFiles(
  settings: ServingSettings,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<ServingFiles> {
  const { tlsCertFile, tlsPrivateKeyFile, certDir, hostName } = settings;
  if (tlsCertFile !== "" || tlsPrivateKeyFile !== "") return { certFile: tlsCertFile, keyFile: tlsPrivateKeyFile };
  const files = { certFile: join(certDir, "kubelet.crt"), keyFile: join(certDir, "kubelet.key") };
  const [hasCertificate, hasKey] = await Promise.all([isReadable(files.certFile), isReadable(files.keyFile)]);
  if (hasCertificate && hasKey) return files;
  if (hasCertificate || hasKey) {
    const [there, missing] = hasCertificate ? [files.certFile, files.keyFile] : [files.keyFile, files.certFile];
    throw new Error(`certificate and key must be supplied as a pair: ${there} is there, ${missing} is not`);
  }
  const { certificate, key } = await makeSelfSigned(hostName, clock.now());
  await mkdir(certDir, { recursive: true, mode: 0o755 });
  // The key first: a certificate without it could not be mended by the next start.
  await saveFile(files.keyFile, key, 0o600);
  await saveFile(files.certFile, certificate, 0o644);
  log.info("Using self-signed cert", files);
  return files;
}

async function isReadable(path: string): Promise<boolean> {
  try {
    await readFile(path);
    return true;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}
