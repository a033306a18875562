import { readRunOnceArgs } from "../ground/config/index.ts";
import { type PodOutcome, waitForPods } from "../pod/status/index.ts";
import { type DaemonProcess, runDaemon } from "./daemon.ts";

/**
 * Starts the pods that the sources name, waits until each runs or has failed, says so and leaves them running. The
 * exit code is 0 when all of them run or have succeeded.
 */
export async function runOnce(daemon: DaemonProcess, stop: AbortSignal): Promise<number> {
  const options = readRunOnceArgs(daemon.argv);
  if (options === undefined) {
    daemon.logWriter.plain("nodelet run-once: --timeout wants a number of seconds above 0\n");
    return 2;
  }
  let outcomes: readonly PodOutcome[] = [];
  const code = await runDaemon({ ...daemon, argv: options.argv }, stop, async (pods, signal) => {
    outcomes = await waitForPods(pods, { clock: daemon.clock, timeoutMs: options.timeoutMs }, signal);
    for (const { pod, text } of outcomes) daemon.print(`${pod}: ${text}\n`);
    if (outcomes.length === 0) daemon.print("no pod was found\n");
  });
  return code === 0 && (outcomes.length === 0 || outcomes.some(({ ok }) => !ok)) ? 1 : code;
}
