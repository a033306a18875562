import type { Clock, Timer } from "../../ground/base/index.ts";

/** Timers are always a little late; beyond this the agent itself did not get to run. */
const tolerableMs = 50;
const mostExtensions = 3;

/**
 * Calls `action` when the container has had its time. If the agent was held up meanwhile, by its own work or a busy
 * machine, answers may lie unread and the fault is ours: the time lost is granted again.
 */
export function fairDeadline(clock: Clock, ms: number, action: () => void): Timer {
  let extensionsLeft = mostExtensions;
  let timer = arm(ms);
  function arm(waitMs: number): Timer {
    const due = clock.monotonic() + waitMs;
    return clock.after(waitMs, () => {
      const lateMs = clock.monotonic() - due;
      if (lateMs <= tolerableMs || extensionsLeft-- === 0) action();
      else timer = arm(Math.min(lateMs, ms));
    });
  }
  return { cancel: () => timer.cancel() };
}
