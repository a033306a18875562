import { readdir } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";
import { type Clock, explain, type Logger, type TaskScope } from "../../ground/base/index.ts";
import { setOwnOomScore } from "./oom-score.ts";
import { setOpenFileLimit } from "./open-files.ts";

export interface OwnProcessSettings {
  readonly oomScoreAdj: number;
  readonly maxOpenFiles: number;
  /** Where the process is kept in a cgroup it is looked after more often, as in the kubelet. */
  readonly kubeletCgroups: string;
}

/** As nice(2) has it. The agent takes hardly any time of a processor, but pods wait for what it has to do. */
const ownPriority = -10;
const oomScoreEveryMs = { anywhere: 5 * 60_000, kept: 60_000 };

/** Raises what this process may use and keeps the kernel from killing it first. What is not allowed is said once. */
export async function tuneOwnProcess(
  { oomScoreAdj, maxOpenFiles, kubeletCgroups }: OwnProcessSettings,
  { clock, log, scope }: { readonly clock: Clock; readonly log: Logger; readonly scope: TaskScope },
): Promise<void> {
  try {
    await setOpenFileLimit(maxOpenFiles);
  } catch (error) {
    log.error("Failed to set rlimit on max file handles", error);
  }
  await goFirst(log);
  // Beside the start rather than in it: where it is not allowed, its second try would hold up the rest.
  scope.spawn("OOM score", async (signal) => {
    let lastProblem: string | undefined;
    for (;;) {
      const problem = await oomScoreProblem(oomScoreAdj, clock, signal);
      if (problem !== undefined && problem !== lastProblem) log.info("Failed to apply the OOM score", { problem });
      lastProblem = problem;
      await clock.sleep(kubeletCgroups === "" ? oomScoreEveryMs.anywhere : oomScoreEveryMs.kept, signal);
    }
  });
}

/**
 * Lets this process have a processor before pods that want them all: one that waits 100 ms for it at every turn is late
 * with every status and every probe. Whoever has given it another priority than the usual one knows better.
 */
async function goFirst(log: Logger): Promise<void> {
  try {
    if (getPriority() !== 0) return;
    // The kernel's priorities are of threads; those made later inherit them.
    for (const thread of await readdir("/proc/self/task")) setPriority(Number(thread), ownPriority);
  } catch (error) {
    log.info("Could not give the agent a higher priority than other processes", { problem: explain(error) });
  }
}

async function oomScoreProblem(score: number, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  try {
    await setOwnOomScore(score, clock, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    return explain(error);
  }
}
