import { Backoff } from "../../ground/base/index.ts";
import type { Container, ObservedContainer } from "../../ground/model/index.ts";
import type { PodCheckpoint } from "./ports.ts";

/**
 * How long a container that ended must wait before it starts again: none the first time, then 10 s doubling to five
 * minutes, counted from its end. A changed image or changed resources start over.
 */
export class CrashBackoff {
  readonly #backoff: Backoff<string>;
  /** Starts that were allowed and have not come about: after which end, if this agent allowed them, and when. */
  readonly #allowed = new Map<string, { readonly after: string | undefined; readonly at: number }>();
  readonly #noticed = new Map<string, { readonly id: string; readonly at: number }>();
  readonly #maxMs: number;

  constructor(settings: { readonly initialMs: number; readonly maxMs: number }, saved: PodCheckpoint["crashBackoff"]) {
    // One that has behaved for twice the longest wait starts over.
    this.#backoff = new Backoff({ ...settings, forgetMs: 2 * settings.maxMs });
    this.#maxMs = settings.maxMs;
    for (const [key, { delayMs, updatedAt }] of Object.entries(saved ?? {})) {
      this.#backoff.restore(key, delayMs, updatedAt);
      this.#allowed.set(key, { after: undefined, at: updatedAt });
    }
  }

  /** When the container may start, if that is later than now, with the delay that users are told. */
  waitFor(container: Container, ended: ObservedContainer | undefined, now: number): BackoffWait | undefined {
    if (ended === undefined) return undefined;
    const key = keyOf(container);
    const since = this.#endOf(ended, now);
    if (this.#isAllowed(key, ended, since, now)) return undefined;
    if (!this.#backoff.isWaiting(key, since, now)) return undefined;
    const delayMs = this.#backoff.get(key);
    return { delayMs, until: since + delayMs };
  }

  /** The container is started again after having ended: the next time it waits longer. */
  advance(container: Container, ended: ObservedContainer, now: number): void {
    const [key, since] = [keyOf(container), this.#endOf(ended, now)];
    if (this.#isAllowed(key, ended, since, now)) return;
    this.#backoff.advance(key, since, now);
    // Nobody waits for them any more, and a container may be given another image or size thousands of times.
    this.#backoff.prune(now - this.#maxMs);
    this.#allowed.set(key, { after: ended.id, at: now });
  }

  /** It runs: its next end counts again. */
  started(container: Container): void {
    this.#allowed.delete(keyOf(container));
  }

  /** What keeps a start that was allowed from coming about is no fault of the container; others make it wait for that. */
  #isAllowed(key: string, { id }: ObservedContainer, since: number, now: number): boolean {
    const allowed = this.#allowed.get(key);
    if (allowed === undefined || (allowed.after !== undefined && allowed.after !== id)) return false;
    return since <= allowed.at && allowed.at <= now;
  }

  /** One that ended at a time yet to come ended before the clock was set back: it counts from when that was noticed. */
  #endOf({ id, name, finishedAt }: ObservedContainer, now: number): number {
    if (finishedAt <= now) return finishedAt;
    const noticed = this.#noticed.get(name);
    if (noticed?.id === id && noticed.at <= now) return noticed.at;
    this.#noticed.set(name, { id, at: now });
    return now;
  }

  snapshot(): NonNullable<PodCheckpoint["crashBackoff"]> {
    return Object.fromEntries(this.#backoff.entries());
  }
}

export interface BackoffWait {
  readonly delayMs: number;
  readonly until: number;
}

export function backoffMessage(pod: string, container: string, delay: string): string {
  return `back-off ${delay} restarting failed container=${container} pod=${pod}`;
}

function keyOf({ name, image, resources }: Container): string {
  return JSON.stringify([name, image, resources ?? {}]);
}

/** The newest instance of a name that has ended by itself, which is what the wait counts from. */
export function newestEnded(containers: readonly ObservedContainer[], name: string): ObservedContainer | undefined {
  return containers.find(
    (container) => container.name === name && container.state === "exited" && !container.startCutOff,
  );
}
