import type { Clock, Logger } from "../../../ground/base/index.ts";
import type { CertificateRotation } from "./rotation.ts";

const lookEveryMs = 10_000;
const longestNapMs = 3_600_000;
const patienceMs = 5 * 60_000;

/**
 * Rejects when the agent can't get a client certificate although the API server is there: only a new start, which looks
 * at the bootstrap credentials afresh, may help then.
 */
export async function guardClientCertificate(
  manager: CertificateRotation,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  let missingSince: number | undefined;
  let complained = false;
  while (!signal.aborted) {
    const { hasExpired, serverAnswers } = manager;
    if (manager.current !== undefined) {
      missingSince = undefined;
      complained = false;
      const leftMs = manager.ttlSeconds() * 1_000;
      await clock.sleep(Math.min(Math.max(leftMs, lookEveryMs), longestNapMs), signal);
      continue;
    }
    missingSince ??= clock.monotonic();
    const isLong = clock.monotonic() - missingSince > patienceMs;
    const problem = hasExpired
      ? "The currently active client certificate has expired"
      : "It has been 5m0s since a valid client cert was found";
    if (hasExpired || isLong) {
      if (serverAnswers) throw new Error(`${problem} and the server is responsive`);
      if (!complained)
        log.error("There is no valid client certificate, and the API server cannot be reached", new Error(problem));
      complained = true;
    }
    await clock.sleep(lookEveryMs, signal);
  }
}
