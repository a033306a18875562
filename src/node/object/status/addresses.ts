import { BlockList, isIP, isIPv6 } from "node:net";
import { explain } from "../../../ground/base/index.ts";
import type { NodeAddress } from "../../../ground/model/index.ts";
import { isUnspecified } from "../node-ip.ts";
import type { NetworkFacts } from "../ports.ts";

export interface AddressSettings {
  readonly nodeName: string;
  readonly nodeIps: readonly string[];
  readonly externalCloud: boolean;
}

/** The node's addresses as its status shows them; rejects when none can be found. */
export async function findAddresses(
  { nodeName, nodeIps, externalCloud }: AddressSettings,
  present: readonly NodeAddress[],
  network: NetworkFacts,
  signal: AbortSignal,
): Promise<readonly NodeAddress[]> {
  const hostname: NodeAddress = { type: "Hostname", address: nodeName };
  const given = nodeIps.filter((ip) => !isUnspecified(ip));
  for (const [index, ip] of given.entries()) {
    const problem = problemOf(ip, network.ownAddresses());
    const which = index === 0 ? "nodeIP" : "secondaryNodeIP";
    if (problem !== undefined) throw new Error(`failed to validate ${which}: ${problem}`);
  }
  if (externalCloud) {
    // What the cloud provider says counts, and before it has spoken only what the operator said.
    if (present.length > 0) return present;
    if (nodeIps.length === 0) return [hostname];
  }
  const internal = (address: string): NodeAddress => ({ type: "InternalIP", address });
  if (given.length > 1) return [...given.map(internal), hostname];
  return [internal(given[0] ?? (await findAddress(nodeName, nodeIps, network, signal))), hostname];
}

async function findAddress(
  nodeName: string,
  nodeIps: readonly string[],
  network: NetworkFacts,
  signal: AbortSignal,
): Promise<string> {
  if (isIP(nodeName) !== 0) return nodeName;
  const family = nodeIps.some((ip) => isIPv6(ip)) ? 6 : 4;
  const named = await lookUpQuietly(nodeName, network, signal);
  const own = network.ownAddresses();
  const usable = named.filter((ip) => problemOf(ip, own) === undefined);
  const preferred = usable.find((ip) => isIP(ip) === family) ?? usable[0];
  if (preferred !== undefined) return preferred;
  try {
    const found = (await network.defaultAddress(family)) ?? (await network.defaultAddress(family === 4 ? 6 : 4));
    if (found !== undefined) return found;
  } catch (error) {
    throw new Error(`can't get ip address of node ${nodeName}. error: ${explain(error)}`, { cause: error });
  }
  throw new Error(`can't get ip address of node ${nodeName}. error: no default routes found`);
}

/** A name that nobody knows is the usual case, not a failure. */
async function lookUpQuietly(name: string, network: NetworkFacts, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await network.lookup(name, signal);
  } catch {
    signal.throwIfAborted();
    return [];
  }
}

const linkLocal = new BlockList();
linkLocal.addSubnet("169.254.0.0", 16, "ipv4");
linkLocal.addSubnet("fe80::", 10, "ipv6");
const multicast = new BlockList();
multicast.addSubnet("224.0.0.0", 4, "ipv4");
multicast.addSubnet("ff00::", 8, "ipv6");
const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

function problemOf(ip: string, own: ReadonlySet<string>): string | undefined {
  const family = isIPv6(ip) ? "ipv6" : "ipv4";
  if (loopback.check(ip, family)) return "nodeIP can't be loopback address";
  if (multicast.check(ip, family)) return "nodeIP can't be a multicast address";
  if (linkLocal.check(ip, family)) return "nodeIP can't be a link-local unicast address";
  if (isUnspecified(ip)) return "nodeIP can't be an all zeros address";
  return own.has(ip) ? undefined : `node IP: "${ip}" not found in the host's network interfaces`;
}
