import type { RunTool } from "../../../connections/host/index.ts";
import { type Clock, FairLimiter, formatDuration, withDeadline } from "../../../ground/base/index.ts";

// The longest that iscsiadm tries a portal by itself is two minutes.
const longestMs = 180_000;
const toolsAtOnce = 8;
const toolsPerPod = 2;
const patienceMs = 5_000;

/** Programs that talk to storage somewhere, which may never answer: each pod has a few at a time, and each an end. */
export function boundedTools(run: RunTool, clock: Clock): (owner: string) => RunTool {
  const turns = new FairLimiter<string>(clock, { limit: toolsAtOnce, share: toolsPerPod, patienceMs });
  return (owner) => (program, args, signal) => {
    const late = (): Error => new Error(`${program} did not end within ${formatDuration(longestMs)}`);
    const bounded = (stop: AbortSignal): Promise<string> =>
      turns.run(owner, () => withDeadline(clock, longestMs, late, stop, (inTime) => run(program, args, inTime)), stop);
    return bounded(signal);
  };
}
