import { type Clock, explain, type Logger, type TaskScope } from "../../ground/base/index.ts";
import { setOwnOomScore } from "./oom-score.ts";
import { setOpenFileLimit } from "./open-files.ts";

export interface OwnProcessSettings {
  readonly oomScoreAdj: number;
  readonly maxOpenFiles: number;
}

const oomScoreEveryMs = 5 * 60_000;

/** Raises what this process may use and keeps the kernel from killing it first. What is not allowed is said once. */
export async function tuneOwnProcess(
  { oomScoreAdj, maxOpenFiles }: OwnProcessSettings,
  { clock, log, scope }: { readonly clock: Clock; readonly log: Logger; readonly scope: TaskScope },
): Promise<void> {
  try {
    await setOpenFileLimit(maxOpenFiles);
  } catch (error) {
    log.error("Failed to set rlimit on max file handles", error);
  }
  // Beside the start rather than in it: where it is not allowed, its second try would hold up the rest.
  scope.spawn("OOM score", async (signal) => {
    let lastProblem: string | undefined;
    for (;;) {
      const problem = await oomScoreProblem(oomScoreAdj, clock, signal);
      if (problem !== undefined && problem !== lastProblem) log.info("Failed to apply the OOM score", { problem });
      lastProblem = problem;
      await clock.sleep(oomScoreEveryMs, signal);
    }
  });
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
