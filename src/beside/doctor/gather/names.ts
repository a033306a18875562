import { Resolver } from "node:dns/promises";
import { isIP } from "node:net";
import { messageOf, onAbort, withDeadline } from "../../../ground/base/index.ts";
import type { ExaminedWorld } from "../world.ts";
import { secondsText } from "./patience.ts";

const usualMs = 700;

/**
 * Addresses of a host by the hosts file and the name servers. Not through the system's own resolver: its question can't
 * be given up, and a dead name server would hold the end of the process.
 */
export async function addressesOf(
  host: string,
  { machine, clock, patience }: ExaminedWorld,
  signal: AbortSignal,
): Promise<readonly string[] | { readonly problem: string }> {
  if (isIP(host) !== 0) return [host];
  if (host === "localhost") return ["127.0.0.1"];
  const written = inHostsFile((await machine.textIfThere("/etc/hosts").catch(() => undefined)) ?? "", host);
  if (written.length > 0) return written;
  const withinMs = Math.round(usualMs * patience);
  const resolver = new Resolver({ timeout: withinMs, tries: 1 });
  try {
    const late = (): Error => new Error(`no name server answered within ${secondsText(withinMs)}`);
    return await withDeadline(clock, withinMs, late, signal, async (bounded) => {
      using _ = onAbort(bounded, () => resolver.cancel());
      return await resolver.resolve4(host).catch(async (error: unknown) => {
        bounded.throwIfAborted();
        return await resolver.resolve6(host).catch(() => Promise.reject(error));
      });
    });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { problem: messageOf(error) };
  }
}

export function inHostsFile(hosts: string, wanted: string): readonly string[] {
  return hosts.split("\n").flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    return names.some((name) => name.toLowerCase() === wanted.toLowerCase()) ? [address] : [];
  });
}
