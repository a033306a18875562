import { Backoff, type Clock } from "../../ground/base/index.ts";
import type { ImageReason } from "../../ground/model/index.ts";

/** A pull that failed: what is shown while it is not tried again. */
export interface FailedPull {
  readonly reason: ImageReason;
  readonly message: string;
}

/** One entry as kept across a restart of the agent. */
export interface SavedBackoff extends FailedPull {
  readonly podUid: string;
  readonly image: string;
  readonly delayMs: number;
  readonly failedAt: number;
}

const forgetMs = 600_000;

/** How long a pod leaves an image alone that it could not pull: 10 s, doubling to 5 min. */
export class PullBackoff {
  readonly #backoff = new Backoff<string>({ initialMs: 10_000, maxMs: 300_000, forgetMs });
  readonly #failures = new Map<string, SavedBackoff>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The failure that is still waited out, and when that ends. */
  waiting(podUid: string, image: string): (FailedPull & { readonly until: number }) | undefined {
    const key = keyOf(podUid, image);
    const failure = this.#failures.get(key);
    const now = this.#clock.now();
    // A clock that was set back must not stretch the wait.
    if (failure === undefined || now < failure.failedAt) return undefined;
    if (!this.#backoff.isWaiting(key, failure.failedAt, now)) return undefined;
    return { reason: failure.reason, message: failure.message, until: failure.failedAt + failure.delayMs };
  }

  /** Returns when the next try is due. */
  failed(podUid: string, image: string, failure: FailedPull): number {
    const now = this.#clock.now();
    const delayMs = this.#backoff.advance(keyOf(podUid, image), now, now);
    this.#failures.set(keyOf(podUid, image), { podUid, image, delayMs, failedAt: now, ...failure });
    return now + delayMs;
  }

  /** Drops what is long past; called after a success, so that the maps stay small. */
  prune(): void {
    const now = this.#clock.now();
    this.#backoff.prune(now);
    for (const [key, { failedAt }] of this.#failures) if (now - failedAt > forgetMs) this.#failures.delete(key);
  }

  forgetPod(podUid: string): void {
    for (const [key, failure] of this.#failures) {
      if (failure.podUid !== podUid) continue;
      this.#failures.delete(key);
      this.#backoff.forget(key);
    }
  }

  save(): readonly SavedBackoff[] {
    return [...this.#failures.values()];
  }

  restore(entries: readonly SavedBackoff[]): void {
    for (const entry of entries) {
      const key = keyOf(entry.podUid, entry.image);
      this.#failures.set(key, entry);
      this.#backoff.restore(key, entry.delayMs, entry.failedAt);
    }
  }
}

function keyOf(podUid: string, image: string): string {
  return `${podUid}_${image}`;
}
