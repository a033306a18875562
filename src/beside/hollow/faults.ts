import { type CriCode, CriError, type CriOperation } from "../../connections/cri/index.ts";
import { type Clock, onAbort } from "../../ground/base/index.ts";

/** Where in a call a fault strikes. */
export type FaultPoint =
  /** Nothing has been done yet. */
  | "before"
  /** runPodSandbox and createContainer: the name is taken, nothing is visible; giving up the call does not free it. */
  | "during"
  /** Everything has been done, only the answer is missing. */
  | "after";

export type FaultEffect =
  | { readonly type: "error"; readonly code: CriCode; readonly message: string }
  | { readonly type: "delay"; readonly ms: number }
  /** No answer for as long as the fault is there. */
  | { readonly type: "hang" };

export interface Fault {
  /** undefined: every operation. */
  readonly operation?: CriOperation;
  /** undefined: every pod, and calls about none. */
  readonly podUid?: string;
  readonly at?: FaultPoint;
  readonly effect: FaultEffect;
  /** How many calls it strikes before it is gone; undefined: all, until removed. */
  readonly times?: number;
}

export interface ActiveFault {
  /** Calls that hang because of it go on. */
  remove(): void;
}

/** The faults a test has asked for. */
export class Faults {
  readonly #clock: Clock;
  readonly #active = new Set<{ readonly fault: Fault; left: number; readonly removed: AbortController }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isEmpty(): boolean {
    return this.#active.size === 0;
  }

  add(fault: Fault): ActiveFault {
    const entry = { fault, left: fault.times ?? Number.POSITIVE_INFINITY, removed: new AbortController() };
    this.#active.add(entry);
    return {
      remove: () => {
        this.#active.delete(entry);
        entry.removed.abort();
      },
    };
  }

  clear(): void {
    for (const entry of this.#active) entry.removed.abort();
    this.#active.clear();
  }

  /** Lets every fault that applies strike; resolves at once when none does. */
  async strike(
    point: FaultPoint,
    operation: CriOperation,
    podUid: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    for (const entry of [...this.#active]) {
      const { fault, removed } = entry;
      if ((fault.at ?? "before") !== point) continue;
      if (fault.operation !== undefined && fault.operation !== operation) continue;
      if (fault.podUid !== undefined && fault.podUid !== podUid) continue;
      if (--entry.left <= 0) this.#active.delete(entry);
      await this.#cause(fault.effect, operation, removed.signal, signal);
    }
  }

  async #cause(effect: FaultEffect, operation: string, removed: AbortSignal, signal: AbortSignal): Promise<void> {
    switch (effect.type) {
      case "error":
        throw new CriError(effect.code, operation, effect.message);
      case "delay":
        return await this.#clock.sleep(effect.ms, signal);
      case "hang":
        return await eitherAborts(removed, signal);
    }
  }
}

/** Resolves when the first aborts, rejects with the reason of the second when that does. */
async function eitherAborts(done: AbortSignal, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  if (done.aborted) return;
  await new Promise<void>((resolve, reject) => {
    const links = [done, signal].map((each) => onAbort(each, () => settle()));
    const settle = (): void => {
      for (const link of links) link[Symbol.dispose]();
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
  });
}
