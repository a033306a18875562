import { type Clock, isAbort, type Logger, messageOf, Pause } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { OrphanedDirectoriesReport } from "./orphaned-directories.ts";
import type { PodVolumes } from "./pod-volumes.ts";

const sweepEveryMs = 2 * 60_000;
const notReadyMs = 2_000;

export interface SweepPorts {
  readonly volumes: Pick<PodVolumes, "cleanOrphanedDirectories">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Undefined while not every pod is known. */
  readonly podsInUse: (signal: AbortSignal) => Promise<ReadonlySet<PodUid> | undefined>;
  readonly onSweep: (report: OrphanedDirectoriesReport) => void;
}

/** Removes directories of pods that an earlier run could not finish with, once every source has said what it wants. */
export async function sweepOrphanedDirectories(ports: SweepPorts, signal: AbortSignal): Promise<void> {
  const pause = new Pause(ports.clock);
  while (!signal.aborted) {
    let wasDone = false;
    try {
      wasDone = await sweep(ports, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      ports.log.warn("Could not look for directories of pods that are gone", { reason: messageOf(error) });
    }
    await pause.wait(wasDone ? sweepEveryMs : notReadyMs, signal);
  }
}

async function sweep({ volumes, log, podsInUse, onSweep }: SweepPorts, signal: AbortSignal): Promise<boolean> {
  const known = await podsInUse(signal);
  if (known === undefined) return false;
  const report = await volumes.cleanOrphanedDirectories(known, signal);
  onSweep(report);
  for (const uid of report.removed) log.info("Removed the directory of a pod that is gone", { uid });
  for (const { uid, message } of report.problems) log.warn(message, { uid });
  return true;
}
