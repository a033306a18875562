import { hasCode, messageOf, ProgramError, runToEnd, withDeadline } from "../../../ground/base/index.ts";
import type { ExaminedWorld } from "../world.ts";
import { secondsText } from "./patience.ts";

/** The iptables that the agent and its neighbours would run. */
export type IptablesFacts =
  | { readonly state: "absent" }
  | { readonly state: "unknown"; readonly problem: string }
  | {
      readonly state: "there";
      readonly version: string;
      /** Undefined: before 1.8 there was only one. */
      readonly mode: "nf_tables" | "legacy" | undefined;
      /** Tables of the old back end that are in use. */
      readonly legacyTables: readonly string[];
    };

const usualMs = 700;
const env = { PATH: "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin", LC_ALL: "C" };

export async function iptablesFacts(
  { machine, clock, patience }: ExaminedWorld,
  signal: AbortSignal,
): Promise<IptablesFacts> {
  const withinMs = usualMs * patience;
  const late = (): Error => new Error(`no answer within ${secondsText(withinMs)}`);
  try {
    const command = { program: "iptables", args: ["--version"], env, longestAnswer: 4096 };
    const said = await withDeadline(clock, withinMs, late, signal, (bounded) => runToEnd(command, bounded));
    const found = iptablesVersion(said);
    if (found === undefined)
      return { state: "unknown", problem: `iptables --version says ${JSON.stringify(said.trim())}` };
    const tables = (await machine.textIfThere("/proc/net/ip_tables_names").catch(() => undefined)) ?? "";
    return { state: "there", ...found, legacyTables: tables.split("\n").filter((name) => name !== "") };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof ProgramError && hasCode(error.cause, "ENOENT")) return { state: "absent" };
    return { state: "unknown", problem: messageOf(error) };
  }
}

export function iptablesVersion(said: string) {
  const match = /iptables v(\d+\.\d+\.\d+)(?:\s+\((nf_tables|legacy)\))?/.exec(said);
  if (match === null) return undefined;
  const [, version = "", mode] = match;
  return { version, mode: mode as "nf_tables" | "legacy" | undefined };
}
