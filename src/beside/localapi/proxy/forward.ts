import { once } from "node:events";
import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { pipeline } from "node:stream";
import { messageOf, systemNames } from "../../../ground/base/index.ts";
import type { KeyPair } from "../auth/certificates.ts";
import { isProxyable } from "../hosts.ts";
import { badRequest, StatusError } from "../status-error.ts";
import type { ProxyTarget } from "./target.ts";

export interface ForwardedRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: AsyncIterable<unknown>;
}

/**
 * Begins a request to the target, which ends with the signal. A kubelet's certificate is its own affair, as it is
 * upstream by default. Pods and nodes tell their addresses themselves, so that others than kubelets are called only where
 * they can't be this machine.
 */
export function callTarget(
  target: ProxyTarget,
  { method, headers }: ForwardedRequest,
  identity: KeyPair,
  signal: AbortSignal,
): ClientRequest {
  const { host, port, path, protocol, isKubelet } = target;
  if (!isKubelet && (host === "" || (isIP(host) !== 0 && !isProxyable(host)))) throw badRequest("address not allowed");
  const shownHost = isIP(host) === 6 ? `[${host}]` : host;
  const options = {
    ...{ host, port, path, method, signal, agent: false as const },
    headers: { ...headers, host: `${shownHost}:${port}` },
    ...(!isKubelet && { lookup: onlyProxyable }),
  };
  const own = isKubelet ? { cert: identity.certPem, key: identity.keyPem } : {};
  const call =
    protocol === "http:" ? httpRequest(options) : httpsRequest({ ...options, ...own, rejectUnauthorized: false });
  // Whoever waits hears of a failure; one that comes when nobody waits any more must not end the process.
  call.on("error", () => {});
  return call;
}

/** Looks at the very address that is called, not at one that the name had a moment before. */
const onlyProxyable: LookupFunction = (hostname, options, callback) => {
  systemNames.lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null || typeof addresses === "string") callback(error ?? new Error("no list of addresses"), "");
    else if (!addresses.every(({ address }) => isProxyable(address))) callback(new Error("address not allowed"), "");
    else if (options.all === true) callback(null, addresses);
    else callback(null, addresses[0]?.address ?? "", addresses[0]?.family);
  });
};

/** Sends a request on and gives what comes back; all ends with the signal. */
export async function forward(
  target: ProxyTarget,
  request: ForwardedRequest,
  identity: KeyPair,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const call = callTarget(target, request, identity, signal);
  try {
    const answered = once(call, "response");
    if (request.body === undefined) call.end();
    // A body that breaks off breaks the request off; an answer that came before that stands.
    else pipeline(request.body, call, () => {});
    const [response] = await answered;
    return response;
  } catch (error) {
    call.destroy();
    throw unreachable(target, error);
  }
}

export function unreachable({ protocol, host, port, path }: ProxyTarget, error: unknown): StatusError {
  return new StatusError(500, "", `Get "${protocol}//${host}:${port}${path}": ${messageOf(error)}`);
}

/** What was answered, up to so many bytes: who answers may be a pod. */
export async function readUpTo(response: IncomingMessage, mostBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > mostBytes) break;
  }
  return Buffer.concat(chunks).subarray(0, mostBytes).toString();
}
