import { BlockList, isIP } from "node:net";

/** One spelling per host: addresses as the system writes them, names in small letters without a final dot. */
export function canonicalHost(host: string): string {
  switch (isIP(host)) {
    case 4:
      return host;
    case 6:
      return new URL(`http://[${host.replace(/%.*$/, "")}]`).hostname.slice(1, -1);
    default:
      return host.toLowerCase().replace(/\.$/, "");
  }
}

const local = new BlockList();
for (const [network, bits] of [
  ["0.0.0.0", 8],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["224.0.0.0", 4],
  ["255.255.255.255", 32],
] as const)
  local.addSubnet(network, bits, "ipv4");
for (const [network, bits] of [
  ["::", 128],
  ["::1", 128],
  ["fe80::", 10],
  ["ff00::", 8],
] as const)
  local.addSubnet(network, bits, "ipv6");

/** Whether an address is one of a machine among others: not this machine's loopback, nor a link's, nor of a group. */
export function isProxyable(address: string): boolean {
  const version = isIP(address);
  if (version === 0) return false;
  return !local.check(address, version === 4 ? "ipv4" : "ipv6");
}
