import type { HTTPHeader } from "../../model/index.ts";

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
