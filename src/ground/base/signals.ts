import type { Clock } from "./clock.ts";

/** For work that nothing ends. */
export const never: AbortSignal = new AbortController().signal;

/**
 * Calls `act` once when the signal aborts, at once where it already has. Dispose of the answer as soon as the work is
 * over: signals of a daemon live as long as it does, and whatever still listens to them is kept as long.
 */
export function onAbort(signal: AbortSignal | undefined, act: () => void): Disposable {
  if (signal === undefined || signal === never) return deaf;
  if (signal.aborted) {
    act();
    return deaf;
  }
  signal.addEventListener("abort", act, { once: true });
  return new Listening(signal, act);
}

/** A class, since every call of a daemon makes one: an object with a computed name costs many times as much. */
class Listening implements Disposable {
  readonly #signal: AbortSignal;
  readonly #act: () => void;

  constructor(signal: AbortSignal, act: () => void) {
    this.#signal = signal;
    this.#act = act;
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener("abort", this.#act);
  }
}

const deaf: Disposable = { [Symbol.dispose]: () => {} };

/** A signal that fires with any of those given, or by its own `abort`; for as long as it is not disposed of. */
export class LinkedSignal implements Disposable {
  readonly #controller = new AbortController();
  readonly #links: readonly Disposable[];

  constructor(...parents: readonly (AbortSignal | undefined)[]) {
    this.#links = parents.map((parent) => onAbort(parent, () => this.#controller.abort(parent?.reason)));
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#controller.abort(reason);
  }

  [Symbol.dispose](): void {
    for (const link of this.#links) link[Symbol.dispose]();
  }
}

/** Runs work under a signal that fires with the given one or after `ms`, with the reason that `late` makes. */
export async function withDeadline<Result>(
  clock: Clock,
  ms: number,
  late: () => unknown,
  signal: AbortSignal,
  work: (bounded: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  using bounded = new LinkedSignal(signal);
  const timer = clock.after(ms, () => bounded.abort(late()));
  try {
    return await work(bounded.signal);
  } finally {
    timer.cancel();
  }
}

/**
 * The outcome of `work`, or the signal's reason as soon as it aborts. The work itself goes on: for what can't be cut
 * off. Its later failure is nobody's any more.
 */
export async function unlessAborted<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  let listening = deaf;
  const aborted = new Promise<never>((_, reject) => {
    listening = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    listening[Symbol.dispose]();
  }
}

/** Resolves when the signal aborts. */
export function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    onAbort(signal, resolve);
  });
}

/**
 * Waits until `listen` calls its first argument (with the outcome) or its second (with what went wrong), or the signal
 * aborts. What `listen` returns is called exactly once, before whoever waits goes on: there it stops listening.
 */
export function waitFor<Result = void>(
  signal: AbortSignal,
  listen: (done: (result: Result) => void, fail: (error: unknown) => void) => () => void,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    let stop: (() => void) | undefined;
    let isOver = false;
    const end = (settle: () => void): void => {
      if (isOver) return;
      isOver = true;
      aborting[Symbol.dispose]();
      stop?.();
      settle();
    };
    const aborting = onAbort(signal, () => end(() => reject(signal.reason)));
    stop = listen(
      (result) => end(() => resolve(result)),
      (error) => end(() => reject(error)),
    );
    // It may have been over at once, before there was anything to stop.
    if (isOver) stop();
  });
}
