import type { Clock } from "../../base/index.ts";

/** Runs work under a signal that fires with the given one or after `ms`, with the reason that `late` makes. */
export async function withDeadline<Result>(
  clock: Clock,
  ms: number,
  late: () => Error,
  signal: AbortSignal,
  work: (bounded: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = clock.after(ms, () => controller.abort(late()));
  try {
    return await work(controller.signal);
  } finally {
    timer.cancel();
    signal.removeEventListener("abort", onAbort);
  }
}
