import { type Clock, type Logger, onAbort, TaskScope, withDeadline } from "../../../ground/base/index.ts";
import type { CertificateSigningRequest } from "../../../ground/model/index.ts";
import { ApiError, isAlreadyExists, isNotFound } from "../api-error.ts";
import type { KubeClient } from "../client.ts";
import { type Resource, resources } from "../resources.ts";
import { Informer } from "../watch/index.ts";
import { certificatesIn } from "./facts.ts";
import { isSameRequest } from "./signing-request.ts";

/** How long one request may stay undecided: a person may have to approve it. */
export const issuedWithinMs = 15 * 60_000;

/** What the API server is asked to sign. */
export interface IssueOrder {
  /** PKCS#10 as PEM. */
  readonly request: string;
  readonly signerName: string;
  readonly usages: readonly string[];
  /** A name of its own makes a repeated order find what the first one led to. */
  readonly name?: string;
}

export interface IssuePorts {
  readonly client: Pick<KubeClient, "create" | "get" | "list" | "openWatch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random: () => number;
}

/** The order was taken, but no certificate came of it. */
class NotIssuedError extends Error {
  override readonly name = "NotIssuedError";
}

const current = resources.certificateSigningRequests;
const old: typeof current = { ...current, apiVersion: "certificates.k8s.io/v1beta1" };

/** Asks for a certificate, waits for it to be approved and signed, and resolves with it as PEM. */
export async function issueCertificate(
  order: IssueOrder,
  waitMs: number,
  ports: IssuePorts,
  signal: AbortSignal,
): Promise<string> {
  const { resource, object } = await place(order, ports, signal);
  const name = object.metadata?.name ?? "";
  ports.log.info("Asked for a certificate; waiting until it is approved and signed", {
    csr: name,
    signer: order.signerName,
  });
  const late = (): Error => new NotIssuedError(`csr "${name}" was not issued within ${waitMs / 60_000} minutes`);
  return await withDeadline(ports.clock, waitMs, late, signal, (bounded) => issued(resource, object, ports, bounded));
}

type Placed = { readonly resource: typeof current; readonly object: CertificateSigningRequest };

async function place(order: IssueOrder, ports: IssuePorts, signal: AbortSignal): Promise<Placed> {
  const { client } = ports;
  const { name, request, signerName, usages } = order;
  const create = async (resource: typeof current): Promise<Placed> => {
    const { apiVersion, kind } = resource;
    const metadata = name === undefined ? { generateName: "csr-" } : { name };
    const spec = { request: Buffer.from(request).toString("base64"), signerName, usages };
    try {
      return { resource, object: await client.create(resource, {}, { apiVersion, kind, metadata, spec }, signal) };
    } catch (error) {
      if (name === undefined || !isAlreadyExists(error)) throw error;
      const there = await client.get(resource, { name }, {}, signal);
      await checkReusable(there, order, ports.clock.now());
      return { resource, object: there };
    }
  };
  try {
    return await create(current);
  } catch (error) {
    // Servers before 1.19 know only the older version.
    if (!isNotFound(error)) throw error;
    return await create(old).catch((again: unknown) => Promise.reject(isNotFound(again) ? error : again));
  }
}

/** An earlier order by the same key may still be on its way. */
async function checkReusable({ spec, status }: CertificateSigningRequest, order: IssueOrder, now: number) {
  const there = Buffer.from(spec.request, "base64").toString();
  const isSame = spec.signerName === order.signerName && (await isSameRequest(there, order.request));
  if (!isSame) throw new NotIssuedError(`csr "${order.name}" is there already, but it asks for something else`);
  const { X509Certificate } = await import("node:crypto");
  const [certificate] = certificatesIn(pemOf(status?.certificate));
  if (certificate !== undefined && Date.parse(new X509Certificate(certificate).validTo) <= now) {
    throw new NotIssuedError(`csr "${order.name}" is there already, and the certificate it led to has expired`);
  }
}

async function issued(
  resource: Resource<CertificateSigningRequest>,
  { metadata }: CertificateSigningRequest,
  ports: IssuePorts,
  signal: AbortSignal,
): Promise<string> {
  const name = metadata?.name ?? "";
  await using scope = new TaskScope(signal);
  const informer = new Informer<CertificateSigningRequest>(
    { resource, fieldSelector: `metadata.name=${name}`, keep: (object) => object },
    ports,
  );
  return await new Promise<string>((resolve, reject) => {
    let seen = false;
    const look = (): void => {
      try {
        const object = informer.list()[0];
        // The first list may be older than our request.
        if (object === undefined && !seen) return;
        seen = true;
        if (object === undefined) throw new NotIssuedError(`csr "${name}" was deleted`);
        if (object.metadata?.uid !== metadata?.uid) throw new NotIssuedError(`csr "${name}" changed UIDs`);
        const certificate = certificateOf(object);
        if (certificate !== undefined) resolve(certificate);
      } catch (error) {
        reject(error);
      }
    };
    const { signal: ended } = scope;
    onAbort(ended, () => reject(ended.reason));
    informer.onChange(look);
    scope.spawn(`follow csr ${name}`, (following) => informer.run(following));
  });
}

/** Undefined while nobody has decided; rejects when somebody has, and the answer is no. */
function certificateOf({ status }: CertificateSigningRequest): string | undefined {
  for (const { type, reason, message } of status?.conditions ?? []) {
    const why = `reason: ${reason ?? ""}, message: ${message ?? ""}`;
    if (type === "Denied") throw new NotIssuedError(`certificate signing request is denied, ${why}`);
    if (type === "Failed") throw new NotIssuedError(`certificate signing request failed, ${why}`);
  }
  const isApproved = status?.conditions?.some(({ type }) => type === "Approved") === true;
  const certificate = pemOf(status?.certificate);
  return isApproved && certificate !== "" ? certificate : undefined;
}

function pemOf(encoded: string | undefined): string {
  return Buffer.from(encoded ?? "", "base64").toString();
}

/** The server has an opinion about us: it is well, whatever it thinks of the request. */
export function isServerAnswer(error: unknown): boolean {
  return error instanceof ApiError && [401, 403, 404].includes(error.code);
}
