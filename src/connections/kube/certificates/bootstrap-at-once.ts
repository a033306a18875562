import { createHash } from "node:crypto";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { isAbort, isShortage, messageOf, saveFile, withDeadline } from "../../../ground/base/index.ts";
import type { KubeClient } from "../client.ts";
import type { CertificateTemplate } from "./facts.ts";
import type { CertificateFileStore } from "./file-store.ts";
import { type IssuePorts, issueCertificate } from "./issue.ts";
import { type CertificateUse, clientUse } from "./rotation.ts";
import { makeKey, makeSigningRequest, publicKeyBytes } from "./signing-request.ts";

export interface BootstrapPorts extends IssuePorts {
  readonly client: IssuePorts["client"] & Pick<KubeClient, "getText">;
  readonly store: CertificateFileStore;
}

const issuedWithinMs = 3_600_000;
const healthPatienceMs = 60_000;
const healthEveryMs = 2_000;
const healthAnswerMs = 1_000;

/** The names that the API server knows a node by. */
export function nodeIdentity(nodeName: string): CertificateTemplate {
  return { commonName: `system:node:${nodeName}`, organizations: ["system:nodes"], dnsNames: [], ips: [] };
}

/** Gets the node's first client certificate and keeps it; resolves when it is there. */
export async function bootstrapClientCertificate(
  nodeName: string,
  certDir: string,
  ports: BootstrapPorts,
  signal: AbortSignal,
): Promise<void> {
  const { store, log } = ports;
  const template = nodeIdentity(nodeName);
  const keyFile = join(certDir, "kubelet-client.key.tmp");
  // The same key gives the request the same name, so that a new start finds the request of an earlier one.
  const key = (await store.read())?.key ?? (await keyIn(certDir, keyFile));
  await serverAnswers(ports, signal);
  const { request } = await makeSigningRequest(template, key);
  const name = requestName(key, template, clientUse);
  const { signerName, usages } = clientUse;
  const certificate = await issueCertificate({ name, request, signerName, usages }, issuedWithinMs, ports, signal);
  await store.save(certificate, key);
  await rm(keyFile, { force: true });
  log.info("Got the node's client certificate", { file: store.currentPath });
}

/** The name that the kubelet gives a request by this key for this use. */
export function requestName(key: string, template: CertificateTemplate, { usages }: CertificateUse): string {
  const hash = createHash("sha512-256");
  const parts = [publicKeyBytes(key), template.commonName, ...template.organizations, ...usages];
  for (const part of parts) hash.update(`${Buffer.from(part).toString("base64url")}|`);
  return `node-csr-${hash.digest("base64url")}`;
}

async function keyIn(certDir: string, file: string): Promise<string> {
  try {
    const key = await readFile(file, "utf8");
    publicKeyBytes(key);
    return key;
  } catch (error) {
    if (isShortage(error)) throw error;
    const key = await makeKey();
    await mkdir(certDir, { recursive: true, mode: 0o755 });
    await saveFile(file, key, 0o600);
    return key;
  }
}

/** A server that is only about to start would refuse the request; but whether it is well is not for us to decide. */
async function serverAnswers({ client, clock, log, random }: BootstrapPorts, signal: AbortSignal): Promise<void> {
  const giveUpAt = clock.monotonic() + healthPatienceMs;
  const late = (): Error => new Error(`no answer within ${healthAnswerMs / 1_000} s`);
  for (;;) {
    try {
      await withDeadline(clock, healthAnswerMs, late, signal, (bounded) => client.getText("/healthz", bounded));
      return;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      if (clock.monotonic() >= giveUpAt) {
        log.warn("The API server is not healthy; asking for a certificate anyway", { err: messageOf(error) });
        return;
      }
    }
    await clock.sleep(healthEveryMs * (1 + 0.2 * random()), signal);
  }
}
