import type { Clock, Timer } from "../../ground/base/index.ts";

/** A clock that tells how late timers fire: what keeps the event loop from its work shows there, and costs nothing. */
export function measuredClock(inner: Clock, onFired: (lateMs: number) => void): Clock {
  const fired = (dueAt: number): void => onFired(Math.max(0, inner.monotonic() - dueAt));
  const due = (ms: number): number => inner.monotonic() + Math.max(0, ms);
  return {
    now: () => inner.now(),
    monotonic: () => inner.monotonic(),
    async sleep(ms, signal) {
      const dueAt = due(ms);
      await inner.sleep(ms, signal);
      fired(dueAt);
    },
    after(ms, action): Timer {
      const dueAt = due(ms);
      return inner.after(ms, () => {
        fired(dueAt);
        action();
      });
    },
  };
}
