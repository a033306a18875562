import { isIPv6 } from "node:net";

/** Where a request goes, kept as it was written: WHATWG's URL would normalise what users expect to see again. */
export interface HttpUrl {
  readonly scheme: "http" | "https";
  readonly hostname: string;
  readonly port: number;
  /** Path and query as sent. */
  readonly target: string;
  /** The whole URL as messages show it. */
  readonly text: string;
}

/** The URL of an httpGet action; `path` may carry a query and a fragment. */
export function urlOf(scheme: "http" | "https", hostname: string, port: number, path: string): HttpUrl {
  const { target, fragment } = parsePath(path);
  return { scheme, hostname, port, target, text: `${scheme}://${joinHostPort(hostname, port)}${target}${fragment}` };
}

/** `host:port`, the host in brackets when it is an IPv6 address. */
export function joinHostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The URL that a Location header leads to, or why it leads nowhere. */
export function resolveLocation(location: string, from: HttpUrl): HttpUrl | { readonly problem: string } {
  let url: URL;
  try {
    url = new URL(location, from.text);
  } catch {
    return { problem: "not a URL" };
  }
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== "http" && scheme !== "https") return { problem: `unsupported protocol scheme "${scheme}"` };
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" ? (scheme === "http" ? 80 : 443) : Number(url.port);
  return { scheme, hostname, port, target: `${url.pathname}${url.search}`, text: url.href };
}

export function sameHost(a: HttpUrl, b: HttpUrl): boolean {
  return canonicalHost(a.hostname) === canonicalHost(b.hostname);
}

function canonicalHost(hostname: string): string {
  return isIPv6(hostname) ? new URL(`http://[${hostname}]`).hostname.replace(/^\[|\]$/g, "") : hostname.toLowerCase();
}

const validPath = /^[A-Za-z0-9\-_.~!$&'()*+,;=:@[\]/%]*$/;
const controlCharacter = /[^\x20-\x7e\x80-\uffff]/;

/** Bytes that stand for themselves in a path; all others are escaped. */
const isKept: readonly boolean[] = Array.from({ length: 256 }, (_, byte) =>
  /[A-Za-z0-9\-_.~$&+,/:;=@]/.test(String.fromCharCode(byte)),
);
const percent = 0x25;
const hexDigits = Buffer.from("0123456789ABCDEF");

/** A path may be as long as a pod's spec, so every step reads it once. */
function parsePath(path: string): { readonly target: string; readonly fragment: string } {
  const hash = path.indexOf("#");
  const beforeFragment = hash === -1 ? path : path.slice(0, hash);
  const fragment = hash === -1 ? "" : path.slice(hash);
  const question = beforeFragment.indexOf("?");
  const written = withoutAuthority(question === -1 ? beforeFragment : beforeFragment.slice(0, question));
  // A path that is no URL is taken literally, question marks and all.
  if (hasBrokenEscape(written) || controlCharacter.test(path)) {
    return { target: rooted(escapePath(Buffer.from(path))), fragment: "" };
  }
  const query = question === -1 ? "" : escapeQuery(beforeFragment.slice(question));
  return { target: rooted(validPath.test(written) ? written : escapePath(percentDecoded(written))) + query, fragment };
}

/** A path may be written as a whole URL; its scheme and host do not count. */
function withoutAuthority(path: string): string {
  return path.replace(/^(?:[A-Za-z][A-Za-z0-9+.-]*:)?\/\/[^/]*/, "");
}

function rooted(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

function hasBrokenEscape(text: string): boolean {
  return /%(?![0-9A-Fa-f]{2})/.test(text);
}

function percentDecoded(text: string): Buffer {
  const bytes = Buffer.from(text);
  let length = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] ?? 0;
    const isEscape = byte === 0x25;
    bytes[length++] = isEscape ? nibbleOf(bytes[index + 1]) * 16 + nibbleOf(bytes[index + 2]) : byte;
    if (isEscape) index += 2;
  }
  return bytes.subarray(0, length);
}

/** The value of a hexadecimal digit. */
function nibbleOf(digit = 0): number {
  return digit <= 0x39 ? digit & 15 : (digit & 15) + 9;
}

function escapePath(bytes: Buffer): string {
  return escapedWhere(bytes, (byte) => isKept[byte] !== true);
}

/** What is no visible ASCII as its bytes, the rest as it is. */
function escapeQuery(query: string): string {
  if (!/[^\x21-\x7e]/.test(query)) return query;
  return escapedWhere(Buffer.from(query), (byte) => byte <= 0x20 || byte >= 0x7f);
}

/** Byte by byte and without a text for each: what is escaped may be as long as a pod's spec. */
function escapedWhere(bytes: Buffer, isEscaped: (byte: number) => boolean): string {
  const escaped = Buffer.allocUnsafe(bytes.length * 3);
  let length = 0;
  for (let index = 0; index < bytes.length; index++) {
    const byte = bytes[index] ?? 0;
    if (!isEscaped(byte)) escaped[length++] = byte;
    else {
      escaped[length++] = percent;
      escaped[length++] = hexDigits[byte >> 4] ?? 0;
      escaped[length++] = hexDigits[byte & 15] ?? 0;
    }
  }
  return escaped.toString("latin1", 0, length);
}
