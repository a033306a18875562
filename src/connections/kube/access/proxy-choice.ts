import { BlockList, isIP, isIPv6 } from "node:net";

export type Environment = Readonly<Record<string, string | undefined>>;

/** The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY (also in lower case) choose for a server; undefined for none. */
export function proxyFromEnvironment(server: URL, environment: Environment): URL | undefined {
  const read = (name: string): string => environment[name] || environment[name.toLowerCase()] || "";
  const text = read(server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY");
  if (text === "" || goesDirect(server, read("NO_PROXY"))) return undefined;
  const withScheme = text.includes("://") ? text : `http://${text}`;
  if (!URL.canParse(withScheme)) throw new Error("the address of the proxy in the environment cannot be understood");
  return new URL(withScheme);
}

/** Go's rules: loopback never goes through a proxy; entries are *, addresses, networks, names and .suffixes. */
function goesDirect(server: URL, noProxy: string): boolean {
  const host = server.hostname.replace(/^\[|\]$/g, "").toLowerCase();
  const port = server.port || (server.protocol === "https:" ? "443" : "80");
  if (host === "localhost" || loopback.check(host, isIPv6(host) ? "ipv6" : "ipv4")) return true;
  return noProxy
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .some((entry) => entry !== "" && covers(entry, host, port));
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

function covers(entry: string, host: string, port: string): boolean {
  if (entry === "*") return true;
  const [network = "", bits] = entry.split("/");
  if (bits !== undefined) return isIP(network) !== 0 && isIP(host) === isIP(network) && inNetwork(host, network, bits);
  const { name, onPort } = splitPort(entry);
  if (onPort !== undefined && onPort !== port) return false;
  if (isIP(name) !== 0) return name === host;
  if (isIP(host) !== 0) return false;
  const suffix = name.replace(/^\*?\./, ".");
  return suffix.startsWith(".") ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`);
}

function inNetwork(host: string, network: string, bits: string): boolean {
  const family = isIPv6(network) ? "ipv6" : "ipv4";
  const prefix = Number(bits);
  if (!Number.isInteger(prefix) || prefix < 0 || prefix > (family === "ipv6" ? 128 : 32)) return false;
  const list = new BlockList();
  list.addSubnet(network, prefix, family);
  return list.check(host, family);
}

function splitPort(entry: string): { name: string; onPort: string | undefined } {
  const bracketed = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry);
  if (bracketed !== null) return { name: bracketed[1] ?? "", onPort: bracketed[2] };
  if (isIP(entry) !== 0) return { name: entry, onPort: undefined };
  const [name = "", onPort] = entry.split(":");
  return { name, onPort };
}
