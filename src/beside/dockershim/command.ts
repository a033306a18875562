import { type Clock, explain, type LogWriter, onAbort } from "../../ground/base/index.ts";
import { type ShimFlags, settingsOf } from "./options.ts";
import { untilShimStarts } from "./shim.ts";

/** The process as the shim needs it. */
export interface ShimProcess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  readonly logWriter: LogWriter;
}

/** `nodelet dockershim`: serves until `stop` is aborted; the result is the exit code. */
export async function runDockershim(flags: ShimFlags, process: ShimProcess, stop: AbortSignal): Promise<number> {
  const log = process.logWriter.logger("dockershim");
  const settings = settingsOf(flags);
  if ("problem" in settings) {
    process.logWriter.plain(`nodelet dockershim: ${settings.problem}\n`);
    return 2;
  }
  try {
    const { clock, env } = process;
    await using shim = await untilShimStarts(settings, { clock, log, env }, stop);
    const stopped = new Promise<"stopped">((resolve) => void onAbort(stop, () => resolve("stopped")));
    const ended = await Promise.race([stopped, shim.failed.then((reason) => ({ reason }))]);
    if (ended !== "stopped") throw ended.reason;
    return 0;
  } catch (error) {
    if (stop.aborted) return 0;
    log.error("command failed", new Error(explain(error), { cause: error }));
    return 1;
  }
}
