import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { type Clock, systemNames, withDeadline } from "../../ground/base/index.ts";

export interface ManifestDownload {
  readonly status: number;
  /** Such as `404 Not Found`. */
  readonly statusText: string;
  /** At most one byte more than the limit, which shows that there was more. */
  readonly body: Uint8Array;
}

export interface ManifestRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly timeoutMs: number;
  readonly maxBytes: number;
}

const mostRedirects = 10;
const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Not shown to another host that a redirect leads to. */
const privateHeaders: ReadonlySet<string> = new Set(["authorization", "www-authenticate", "cookie", "cookie2"]);

/** One GET with redirects, within the time limit. Rejects with a message that names what went wrong. */
export async function getManifest(get: ManifestRequest, clock: Clock, signal: AbortSignal): Promise<ManifestDownload> {
  const late = (): Error => new Error(`no complete answer within ${get.timeoutMs / 1000} s`);
  return withDeadline(clock, get.timeoutMs, late, signal, async (bounded) => {
    try {
      return await follow(get, bounded);
    } catch (error) {
      throw bounded.aborted ? bounded.reason : error;
    }
  });
}

async function follow({ url, headers, maxBytes }: ManifestRequest, signal: AbortSignal): Promise<ManifestDownload> {
  const first = new URL(url);
  let target = first;
  for (let redirects = 0; redirects <= mostRedirects; redirects++) {
    const response = await getOnce(target, headersFor(target, first, headers), signal);
    const { statusCode = 0, statusMessage = "", headers: answered } = response;
    const { location } = answered;
    if (redirectStatuses.has(statusCode) && location !== undefined) {
      response.destroy();
      target = new URL(location, target);
      continue;
    }
    return {
      status: statusCode,
      statusText: `${statusCode} ${statusMessage}`,
      body: await readBody(response, maxBytes),
    };
  }
  throw new Error(`stopped after ${mostRedirects} redirects`);
}

function headersFor(target: URL, first: URL, headers: ManifestRequest["headers"]): Record<string, string[]> {
  const isSameHost = target.host === first.host || target.hostname.endsWith(`.${first.hostname}`);
  const shown = Object.entries(headers).filter(([name]) => isSameHost || !privateHeaders.has(name.toLowerCase()));
  return Object.fromEntries(shown.map(([name, values]) => [name, [...values]]));
}

function getOnce(url: URL, headers: Record<string, string[]>, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = url.protocol === "https:" ? requestHttps : requestHttp;
    // No agent: one request in a long while is not worth a connection kept open.
    request(url, { headers, signal, agent: false, lookup: systemNames.lookup }, resolve).on("error", reject).end();
  });
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of response as AsyncIterable<Buffer>) {
    parts.push(part);
    length += part.length;
    if (length > maxBytes) break;
  }
  response.destroy();
  return Buffer.concat(parts).subarray(0, maxBytes + 1);
}
