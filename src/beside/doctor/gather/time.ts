import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";

/** The machine's clock. */
export interface TimeFacts {
  /** Ours minus the API server's; undefined: it did not say. */
  readonly aheadOfApiMs: number | undefined;
  /** Who keeps the clock right, in words; undefined: nobody that we know. */
  readonly keptBy: string | undefined;
}

const keepers = new Set(["chronyd", "ntpd", "systemd-timesyncd", "systemd-timesyn"]);

export async function gatherTime({ machine }: ExaminedWorld, need: NeedFact): Promise<TimeFacts> {
  const [processes, api, isSynchronised] = await Promise.all([
    need("processes"),
    need("api").catch(() => undefined),
    machine.isThere("/run/systemd/timesync/synchronized"),
  ]);
  const keeper = processes.find(({ program }) => keepers.has(program))?.program;
  const named = keeper === "systemd-timesyn" ? "systemd-timesyncd" : keeper;
  return {
    aheadOfApiMs: api?.answer?.aheadMs,
    keptBy: isSynchronised ? "systemd-timesyncd, synchronised" : named,
  };
}
