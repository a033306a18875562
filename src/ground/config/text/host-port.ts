import { isIP } from "node:net";

export interface HostPort {
  /** A name or an address; IPv6 without its brackets. */
  readonly host: string;
  readonly port: number;
}

/** `HOST:PORT`, IPv6 in brackets; undefined when it is not that. */
export function parseHostPort(text: string): HostPort | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || port < 1 || port > 65_535) return undefined;
  if (bracketed !== undefined && isIP(bracketed) !== 6) return undefined;
  return { host, port };
}

export function hostPortText({ host, port }: HostPort): string {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}
