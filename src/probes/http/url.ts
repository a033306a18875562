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
const keptWhenEscaped = /[A-Za-z0-9\-_.~$&+,/:;=@]/;

function parsePath(path: string): { readonly target: string; readonly fragment: string } {
  const [beforeFragment = "", ...afterHash] = path.split("#");
  const fragment = afterHash.length > 0 ? `#${afterHash.join("#")}` : "";
  const question = beforeFragment.indexOf("?");
  const query = question === -1 ? "" : beforeFragment.slice(question).replace(/[^\x21-\x7e]/g, encodeURIComponent);
  const written = withoutAuthority(question === -1 ? beforeFragment : beforeFragment.slice(0, question));
  const decoded = percentDecoded(written);
  // A path that is no URL is taken literally, question marks and all.
  if (decoded === undefined || hasControlCharacter(path)) {
    return { target: rooted(escapePath(Buffer.from(path))), fragment: "" };
  }
  return { target: rooted(validPath.test(written) ? written : escapePath(decoded)) + query, fragment };
}

/** A path may be written as a whole URL; its scheme and host do not count. */
function withoutAuthority(path: string): string {
  return path.replace(/^(?:[A-Za-z][A-Za-z0-9+.-]*:)?\/\/[^/]*/, "");
}

function rooted(path: string): string {
  return path.startsWith("/") ? path : `/${path}`;
}

function hasControlCharacter(text: string): boolean {
  return [...text].some((character) => character < " " || character === "\x7f");
}

function percentDecoded(text: string): Buffer | undefined {
  if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
  const parts = text
    .split(/(%[0-9A-Fa-f]{2})/)
    .map((part) => (/^%[0-9A-Fa-f]{2}$/.test(part) ? Buffer.from(part.slice(1), "hex") : Buffer.from(part)));
  return Buffer.concat(parts);
}

function escapePath(bytes: Buffer): string {
  let escaped = "";
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    escaped += keptWhenEscaped.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return escaped;
}
