import { isIPv6, SocketAddress } from "node:net";
import type { NodeAddress } from "../../../ground/model/index.ts";
import { isUnspecified } from "../node-ip.ts";

export interface CloudAddressSettings {
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  /** The name was given by --hostname-override. */
  readonly isNameGiven: boolean;
}

/** The addresses that a cloud gives a node, as its status shows them; throws where they don't fit --node-ip. */
export function cloudAddresses(settings: CloudAddressSettings, given: readonly NodeAddress[]): readonly NodeAddress[] {
  const nodeIps = settings.nodeIps.filter((ip) => !isUnspecified(ip));
  return withHostname(settings, nodeIps.length === 0 ? given : preferring(nodeIps, given));
}

/** The types that the addresses have show them alone; others follow as they are. */
function preferring(nodeIps: readonly string[], given: readonly NodeAddress[]): readonly NodeAddress[] {
  const own = nodeIps.flatMap((nodeIp) => {
    const found = given.filter(({ address }) => isSameIp(address, nodeIp));
    if (found.length > 0) return found;
    throw new Error(`failed to get node address from cloud provider that matches ip: ${nodeIp}`);
  });
  const types = new Set(own.map(({ type }) => type));
  return [...own, ...given.filter(({ type }) => !types.has(type))];
}

/** One address of IPv6 has many spellings. */
function isSameIp(address: string, ip: string): boolean {
  if (!isIPv6(address) || !isIPv6(ip)) return address === ip;
  const [one, other] = [address, ip].map((each) => new SocketAddress({ address: each, family: "ipv6" }).address);
  return one === other;
}

function withHostname(
  { nodeName, isNameGiven }: CloudAddressSettings,
  given: readonly NodeAddress[],
): readonly NodeAddress[] {
  const hostname: NodeAddress = { type: "Hostname", address: nodeName };
  const present = given.find(({ type }) => type === "Hostname");
  if (present === undefined) {
    const isKnown = given.length === 0 || isNameGiven || given.some(({ address }) => address === nodeName);
    return isKnown ? [...given, hostname] : given;
  }
  if (!isNameGiven || present.address === nodeName) return given;
  return given.map((address) => (address.type === "Hostname" ? hostname : address));
}
