import { isIPv6 } from "node:net";
import { isAddress } from "./flag-kinds.ts";

/** What --node-ip says. Members that are no address are left out, as upstream does, and named in `ignored`. */
export interface NodeIPs {
  readonly addresses: readonly string[];
  readonly ignored: readonly string[];
  /** Why the rest cannot be used. */
  readonly problem: string | undefined;
}

export function parseNodeIPs(text: string): NodeIPs {
  const parts = text === "" ? [] : text.split(",").map((part) => part.trim());
  const addresses = parts.filter(isAddress);
  const ignored = parts.filter((part) => !isAddress(part));
  return { addresses, ignored, problem: problemOf(addresses) };
}

function problemOf(addresses: readonly string[]): string | undefined {
  const [first = "", second] = addresses;
  if (addresses.length > 2 || (second !== undefined && isIPv6(first) === isIPv6(second))) {
    return "must contain either a single IP or a dual-stack pair of IPs";
  }
  if (second !== undefined && (isUnspecified(first) || isUnspecified(second))) {
    return "dual-stack node IP cannot include '0.0.0.0' or '::'";
  }
  return undefined;
}

function isUnspecified(address: string): boolean {
  return /^[0:.]+$/.test(address);
}
