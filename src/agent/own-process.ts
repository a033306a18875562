import { type Clock, explain, type Logger, type TaskScope } from "../base/index.ts";
import { setOpenFileLimit, setOwnOomScore } from "../host/index.ts";

export interface OwnProcessSettings {
  readonly oomScoreAdj: number;
  readonly maxOpenFiles: number;
}

const oomScoreEveryMs = 5 * 60_000;

/** Raises what this process may use and keeps the kernel from killing it first. What is not allowed is said once. */
export async function tuneOwnProcess(
  { oomScoreAdj, maxOpenFiles }: OwnProcessSettings,
  { clock, log, scope }: { clock: Clock; log: Logger; scope: TaskScope },
): Promise<void> {
  const applyOomScore = async (signal: AbortSignal): Promise<string | undefined> => {
    try {
      await setOwnOomScore(oomScoreAdj, clock, signal);
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      return explain(error);
    }
  };
  let problem = await applyOomScore(scope.signal);
  if (problem !== undefined) log.info("Failed to apply the OOM score", { oomScoreAdj, problem });
  scope.spawn("OOM score", async (signal) => {
    for (;;) {
      await clock.sleep(oomScoreEveryMs, signal);
      const before = problem;
      problem = await applyOomScore(signal);
      if (problem !== before) log.info("Applied the OOM score again", { oomScoreAdj, problem });
    }
  });
  try {
    await setOpenFileLimit(maxOpenFiles);
  } catch (error) {
    log.error("Failed to set rlimit on max file handles", error);
  }
}
