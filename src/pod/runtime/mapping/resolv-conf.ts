import { open } from "node:fs/promises";
import type { ResolvConf } from "./context.ts";
import { ConfigError } from "./errors.ts";

const longestFileBytes = 10 * 1024 * 1024;

export const dnsLimits = { nameservers: 3, searches: 32, searchLength: 253, searchLineLength: 2048 } as const;

/** The node's resolver settings; undefined for an empty path, which means pods get none from the node. */
export async function readResolvConf(path: string): Promise<ResolvConf | undefined> {
  if (path === "") return undefined;
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    if (size > longestFileBytes) {
      throw new ConfigError(`${path} has ${size} bytes; at most ${longestFileBytes} are read as a resolv.conf`);
    }
    return parseResolvConf(await file.readFile("utf8"));
  } finally {
    await file.close();
  }
}

/** Name servers add up, the last search line wins, options add up with the later value of a name winning. */
export function parseResolvConf(text: string): ResolvConf {
  const nameservers: string[] = [];
  let searches: readonly string[] = [];
  const options = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    if (keyword === "nameserver") {
      const [address] = values;
      if (address === undefined) {
        throw new ConfigError("Encountered error while parsing resolv conf file. Error: nameserver list is empty ");
      }
      nameservers.push(address);
    } else if (keyword === "search") {
      searches = values.filter((domain) => domain !== ".").map((domain) => domain.replace(/\.$/, ""));
    } else if (keyword === "options") {
      for (const option of values) options.set(option.split(":", 1)[0] ?? "", option);
    }
  }
  return { nameservers, searches, options: [...options.values()] };
}

/** What the node's own file has too much of once the cluster's domains join it; undefined when all is well. */
export function resolvConfProblem(path: string, conf: ResolvConf, clusterDomain: string): string | undefined {
  const searchLimit = dnsLimits.searches - (clusterDomain === "" ? 0 : 3);
  if (conf.searches.length > searchLimit) {
    return `Resolv.conf file '${path}' contains search line consisting of more than ${searchLimit} domains!`;
  }
  if (conf.searches.some((domain) => domain.length > dnsLimits.searchLength)) {
    return `Resolv.conf file "${path}" contains a search path which length is more than allowed ${dnsLimits.searchLength} chars!`;
  }
  if (conf.searches.join(" ").length > dnsLimits.searchLineLength) {
    return `Resolv.conf file '${path}' contains search line which length is more than allowed ${dnsLimits.searchLineLength} chars!`;
  }
  return undefined;
}
