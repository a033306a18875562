import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import { messageOf } from "../../base/index.ts";
import { ApiError } from "../api-error.ts";
import type { KeyPair } from "../auth/certificates.ts";
import type { ProxyTarget } from "./target.ts";

export interface ForwardedRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: AsyncIterable<unknown>;
}

/** Begins a request to the target. A kubelet's certificate is its own affair, as it is upstream by default. */
export function callTarget(target: ProxyTarget, { method, headers }: ForwardedRequest, identity: KeyPair) {
  const { host, port, path, protocol } = target;
  const options = { host, port, path, method, headers: { ...headers, host: `${host}:${port}` } };
  if (protocol === "http:") return httpRequest(options);
  const own = target.isKubelet ? { cert: identity.certPem, key: identity.keyPem } : {};
  return httpsRequest({ ...options, ...own, rejectUnauthorized: false, agent: false });
}

/** Sends a request on and gives what comes back. */
export async function forward(
  target: ProxyTarget,
  request: ForwardedRequest,
  identity: KeyPair,
): Promise<IncomingMessage> {
  const call = callTarget(target, request, identity);
  try {
    if (request.body === undefined) call.end();
    else Readable.from(request.body).pipe(call);
    const [response] = await once(call, "response");
    return response;
  } catch (error) {
    throw unreachable(target, error);
  }
}

export function unreachable({ protocol, host, port, path }: ProxyTarget, error: unknown): ApiError {
  return new ApiError(500, "", `Get "${protocol}//${host}:${port}${path}": ${messageOf(error)}`);
}
