import { goQuote } from "../../../ground/base/index.ts";
import type { HTTPHeader } from "../../../ground/model/index.ts";
import { clip } from "../outcome.ts";

/** What is sent besides the request line. */
export interface RequestHeaders {
  /** The Host header when the user set one; otherwise it follows from the URL. */
  readonly host: string | undefined;
  readonly fields: readonly HeaderField[];
}

export type HeaderField = readonly [name: string, value: string];

// The request has no body, whatever the user says.
const aboutBodies = new Set(["Content-Length", "Transfer-Encoding", "Trailer"]);

/**
 * The headers of an httpGet action: the user's in their order, repeated names kept, with a User-Agent and an Accept
 * unless the user set them. An empty value of either means: do not send it. The connection closes after the answer,
 * which a Connection header can only change to ask for another protocol.
 */
export function requestHeaders(wanted: readonly HTTPHeader[], userAgent: string): RequestHeaders {
  const fields = new Map<string, string[]>();
  for (const { name, value } of wanted) {
    const key = canonicalName(name);
    const values = fields.get(key);
    if (values === undefined) fields.set(key, [value]);
    else values.push(value);
  }
  const host = fields.get("Host")?.[0] || undefined;
  const agent = fields.get("User-Agent")?.[0] ?? userAgent;
  const accept = fields.get("Accept") ?? ["*/*"];
  for (const name of ["Host", "User-Agent", "Accept"]) fields.delete(name);
  if (!/\bupgrade\b/i.test(fields.get("Connection")?.join() ?? "")) fields.delete("Connection");
  const lines: HeaderField[] = agent === "" ? [] : [["User-Agent", agent]];
  if (accept[0] !== "") for (const value of accept) lines.push(["Accept", value]);
  for (const [name, values] of fields) {
    if (!aboutBodies.has(name)) for (const value of values) lines.push([name, value]);
  }
  return { host, fields: lines };
}

/** `x-custom-id` as `X-Custom-Id`; what is no header name stays as it is. */
function canonicalName(name: string): string {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) return name;
  return name.toLowerCase().replace(/(?:^|-)[a-z]/g, (start) => start.toUpperCase());
}

// Node's HTTP/2 refuses to send two of these, while its HTTP/1.1 does as Go's does.
const singleInHttp2: ReadonlySet<string> = new Set([
  ...["Access-Control-Allow-Credentials", "Access-Control-Max-Age", "Access-Control-Request-Method", "Age"],
  ...["Alt-Svc", "Authorization", "Content-Encoding", "Content-Language", "Content-Location", "Content-Md5"],
  ...["Content-Range", "Content-Type", "Date", "Dnt", "Etag", "Expires", "From", "Host", "If-Match"],
  ...["If-Modified-Since", "If-None-Match", "If-Range", "If-Unmodified-Since", "Last-Modified", "Location"],
  ...["Max-Forwards", "Proxy-Authorization", "Range", "Referer", "Retry-After", "Tk", "Upgrade-Insecure-Requests"],
  ...["User-Agent", "X-Content-Type-Options"],
]);

/** Whether only HTTP/1.1 will carry these. */
export function hasRepeatedSingle({ fields }: RequestHeaders): boolean {
  const seen = new Set<string>();
  return fields.some(([name]) => {
    if (!singleInHttp2.has(name)) return false;
    if (seen.has(name)) return true;
    seen.add(name);
    return false;
  });
}

/** Why a request with these cannot be sent at all, in the words of Go's HTTP client. */
export function headerProblem({ fields }: RequestHeaders): string | undefined {
  const badName = fields.find(([name]) => !/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name))?.[0];
  if (badName !== undefined) return `net/http: invalid header field name ${goQuote(clip(badName))}`;
  const badValue = fields.find(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value))?.[0];
  if (badValue !== undefined) return `net/http: invalid header field value for ${goQuote(clip(badValue))}`;
  return undefined;
}
