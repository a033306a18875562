import { type Clock, type Logger, messageOf } from "../../ground/base/index.ts";
import { criCodeOf } from "./errors.ts";

/** Between two tries; a runtime that is restarted is back in about a second. */
const firstWaitMs = 500;
const longestWaitMs = 10_000;

/**
 * Asks the runtime as often as it takes. For questions of the start: a runtime that goes in the middle of it is waited for
 * as one that comes late, and nothing is decided without its answer. Rejects when the signal does, with any error that
 * the runtime did not give, and when the runtime says that it does not know the call: asking again will not teach it.
 */
export async function untilAnswered<Answer>(
  question: string,
  ask: () => Promise<Answer>,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<Answer> {
  for (let waitMs = firstWaitMs; ; waitMs = Math.min(2 * waitMs, longestWaitMs)) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      const code = criCodeOf(error);
      if (code === undefined || code === "Unimplemented") throw error;
      log.warn("The container runtime did not answer; asking again", { question, waitMs, err: messageOf(error) });
    }
    await clock.sleep(waitMs, signal);
  }
}
