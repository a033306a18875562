import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

/**
 * Why a request may not come in, by where its browser says that it came from; undefined: it may. Any page of the
 * internet can make a browser send requests to this machine: by our address, or by a name of its own that it has
 * resolve to ours. Neither gets an answer that it could use.
 */
export function foreignness(headers: IncomingHttpHeaders, bound: string, nodeName: string): string | undefined {
  const { host = "", origin } = headers;
  if (!mayBeCalled(host, bound, nodeName)) return "this machine is not called by that name";
  if (origin !== undefined && origin !== `http://${host}`) return "requests of other sites are not answered";
  return crossSite(headers);
}

/** The same for a door where others stand between: the name that the browser used is not to be seen there. */
export function crossSite(headers: IncomingHttpHeaders): string | undefined {
  const site = headers["sec-fetch-site"];
  if (site === undefined || site === "same-origin" || site === "none") return undefined;
  // A link that somebody follows shows the page to that person, and nothing to the site with the link.
  const isLink = headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
  return isLink ? undefined : "requests of other sites are not answered";
}

const everywhere = new Set(["0.0.0.0", "::"]);
const loopback = new Set(["127.0.0.1", "::1", "localhost"]);

/**
 * Whether the Host header is a name of this port. The number of the port is left aside: who forwards it by ssh has
 * another one, and a name that is resolved falsely is given away by itself.
 */
function mayBeCalled(header: string, bound: string, nodeName: string): boolean {
  const [, bracketed, plain] = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]@/\s]+))(?::\d{1,5})?$/.exec(header) ?? [];
  const name = (bracketed ?? plain ?? "").toLowerCase();
  if (name === "") return false;
  if (name === bound.toLowerCase()) return true;
  if (loopback.has(bound)) return loopback.has(name);
  // An address can't be resolved to another one.
  return everywhere.has(bound) && (isIP(name) !== 0 || name === "localhost" || name === nodeName);
}
