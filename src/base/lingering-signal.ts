import type { Clock } from "./clock.ts";

/**
 * Runs work under a signal that fires `ms` after the given one: for calls that are better finished than cut off when
 * what they belong to is given up.
 */
export async function lingering<Result>(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: (late: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const late = new AbortController();
  let timer: { cancel(): void } | undefined;
  const onAbort = (): void => {
    timer = clock.after(ms, () => late.abort(signal.reason));
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await work(late.signal);
  } finally {
    timer?.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}
