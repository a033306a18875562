import { readFile } from "node:fs/promises";
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";

/**
 * The addresses by which this node is reached, primary family first. Given ones are kept; `0.0.0.0` and `::` ask for
 * the default address of that family, as does an empty list for IPv4 before IPv6. None while the network is not up.
 */
export async function nodeAddresses(wanted: readonly string[], root = "/"): Promise<readonly string[]> {
  const chosen: (string | undefined)[] = [];
  for (const ip of wanted) {
    if (ip === "0.0.0.0") chosen.push(await defaultAddress(4, root));
    else if (ip === "::") chosen.push(await defaultAddress(6, root));
    else chosen.push(ip);
  }
  if (wanted.length === 0) chosen.push((await defaultAddress(4, root)) ?? (await defaultAddress(6, root)));
  return chosen.filter((ip) => ip !== undefined);
}

/** The address of that family by which the rest of the world is reached. */
export async function defaultAddress(family: 4 | 6, root = "/"): Promise<string | undefined> {
  const interfaces = networkInterfaces();
  return family === 4
    ? pick(interfaces, "IPv4", await defaultInterfaceV4(root))
    : pick(interfaces, "IPv6", await defaultInterfaceV6(root));
}

/** An address of the interface the default route leaves by, else any that is not the machine talking to itself. */
function pick(
  interfaces: NodeJS.Dict<NetworkInterfaceInfo[]>,
  family: "IPv4" | "IPv6",
  preferred: string | undefined,
): string | undefined {
  const usable = (info: NetworkInterfaceInfo): boolean =>
    info.family === family &&
    !info.internal &&
    !info.address.startsWith("169.254.") &&
    !info.address.startsWith("fe80:");
  const own = preferred === undefined ? [] : (interfaces[preferred] ?? []);
  const others = Object.values(interfaces).flatMap((infos) => infos ?? []);
  return [...own, ...others].find(usable)?.address;
}

/** Lines of /proc/net/route: interface, destination and mask as hex; the default route has zeroes for both. */
async function defaultInterfaceV4(root: string): Promise<string | undefined> {
  for (const line of await linesOf(`${root}/proc/net/route`)) {
    const [name, destination, , , , , , mask] = line.split(/\s+/);
    if (destination === "00000000" && mask === "00000000") return name;
  }
  return undefined;
}

async function defaultInterfaceV6(root: string): Promise<string | undefined> {
  for (const line of await linesOf(`${root}/proc/net/ipv6_route`)) {
    const fields = line.trim().split(/\s+/);
    const name = fields.at(-1);
    if (fields[0] === "0".repeat(32) && fields[1] === "00" && name !== "lo") return name;
  }
  return undefined;
}

async function linesOf(path: string): Promise<readonly string[]> {
  try {
    return (await readFile(path, "utf8")).split("\n");
  } catch {
    return [];
  }
}
