import { SocketAddress } from "node:net";
import { readKernelFile } from "./usage/index.ts";

/**
 * The addresses of an interface in the network namespace of a process, at most one of each family, IPv4 first: as the
 * kernel shows them to whoever may look at the process, without entering its namespace.
 */
export function readAddressesOf(pid: number, interfaceName: string, root = ""): readonly string[] {
  const read = (name: string): string => readKernelFile(`${root}/proc/${pid}/net/${name}`) ?? "";
  const found = [ipv4Of(read("fib_trie"), read("route"), interfaceName), ipv6Of(read("if_inet6"), interfaceName)];
  return found.filter((address) => address !== undefined);
}

/** The table does not say whose an address is: it is that of the interface's network, or there is only one. */
function ipv4Of(trie: string, routes: string, interfaceName: string): string | undefined {
  const local = [...trie.matchAll(/\|-- (\d+\.\d+\.\d+\.\d+)\n\s+\/32 host LOCAL/g)].map(([, address = ""]) => address);
  const others = [...new Set(local)].filter((address) => !address.startsWith("127."));
  const networks = routes.split("\n").flatMap((line) => {
    const [name, destination = "", , , , , , mask = ""] = line.split(/\s+/);
    return name === interfaceName && Number(`0x${mask}`) !== 0 ? [{ destination, mask }] : [];
  });
  const isInside = (address: string): boolean =>
    networks.some(
      ({ destination, mask }) => (wordOf(address) & Number(`0x${mask}`)) >>> 0 === Number(`0x${destination}`),
    );
  return others.find(isInside) ?? (others.length === 1 ? others[0] : undefined);
}

/** As the table of routes has it: the last byte first. */
function wordOf(address: string): number {
  return address.split(".").reduceRight((word, byte) => word * 256 + Number(byte), 0);
}

const globalScope = "00";

function ipv6Of(table: string, interfaceName: string): string | undefined {
  for (const line of table.split("\n")) {
    const [digits = "", , , scope, , name] = line.trim().split(/\s+/);
    if (name !== interfaceName || scope !== globalScope) continue;
    const address = digits.match(/.{4}/g)?.join(":") ?? "";
    return new SocketAddress({ address, family: "ipv6" }).address;
  }
  return undefined;
}
