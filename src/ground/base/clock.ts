import { onAbort } from "./signals.ts";

/** The only place that reads real time. Everything else is handed a Clock, so that tests can hand in their own. */
export interface Clock {
  /** Wall-clock milliseconds since 1970; may jump when the machine's time is set. */
  now(): number;
  /** Milliseconds that only ever grow; for measuring durations. */
  monotonic(): number;
  /** Resolves after `ms`, rejects with the signal's reason when aborted. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** Calls `action` once after `ms` unless cancelled. The timer never keeps the process alive. */
  after(ms: number, action: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

// setTimeout silently fires at once for longer delays.
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    signal.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => {
          listening[Symbol.dispose]();
          resolve();
        },
        Math.min(Math.max(ms, 0), longestTimerMs),
      );
      const listening = onAbort(signal, () => {
        clearTimeout(timer);
        reject(signal.reason);
      });
    });
  },
  after(ms, action) {
    const timer = setTimeout(action, Math.min(Math.max(ms, 0), longestTimerMs));
    timer.unref();
    return { cancel: () => clearTimeout(timer) };
  },
};
