import type { Clock } from "./clock.ts";
import { onAbort } from "./signals.ts";

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
  using _ = onAbort(signal, () => {
    timer = clock.after(ms, () => late.abort(signal.reason));
  });
  try {
    return await work(late.signal);
  } finally {
    timer?.cancel();
  }
}
