import { isIP, isIPv4, isIPv6 } from "node:net";

/**
 * The pod IPs that users see: the first of the node's primary family, then the first of the other one. The runtime
 * may report any number in any order.
 */
export function orderedPodIps(reported: readonly string[], nodeIps: readonly string[]): readonly string[] {
  const primary = nodeIps[0];
  const [first, second] = primary === undefined || isIPv4(primary) ? [isIPv4, isIPv6] : [isIPv6, isIPv4];
  return [reported.find(first), reported.find(second)].filter((ip) => ip !== undefined).map(normalIp);
}

/** An IP in its canonical text: IPv6 is lower case with its longest run of zeros folded. */
export function normalIp(ip: string): string {
  if (isIP(ip) !== 6 || ip.includes("%")) return ip;
  const host = new URL(`http://[${ip}]/`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host);
  if (mapped === null) return host;
  const words = [Number.parseInt(mapped[1] ?? "", 16), Number.parseInt(mapped[2] ?? "", 16)];
  return words.flatMap((word) => [word >> 8, word & 255]).join(".");
}
