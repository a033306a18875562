import { type Clock, withDeadline } from "../../../ground/base/index.ts";

/**
 * A look at something, for all who want to see it at about the same time: many viewers are no more work than one, and
 * rates, which are taken between two looks, are taken over a time that says something.
 */
export class SharedLook<View extends object> {
  readonly #clock: Clock;
  readonly #goodForMs: number;
  readonly #look: (signal: AbortSignal) => Promise<View>;
  readonly #until: AbortSignal;
  #running: Promise<View> | undefined;
  /** Held weakly: when nobody looks any more, nothing is kept for them. */
  #last: { readonly at: number; readonly view: WeakRef<View> } | undefined;

  /** `until` ends every look; so does a time that nobody would wait for. */
  constructor(
    { clock, goodForMs, until }: { readonly clock: Clock; readonly goodForMs: number; readonly until: AbortSignal },
    look: (signal: AbortSignal) => Promise<View>,
  ) {
    this.#clock = clock;
    this.#goodForMs = goodForMs;
    this.#until = until;
    this.#look = look;
  }

  async view(): Promise<View> {
    const isFresh = this.#last !== undefined && this.#clock.monotonic() - this.#last.at < this.#goodForMs;
    const known = isFresh ? this.#last?.view.deref() : undefined;
    if (known !== undefined) return known;
    this.#running ??= this.#lookNow().finally(() => {
      this.#running = undefined;
    });
    return await this.#running;
  }

  async #lookNow(): Promise<View> {
    const at = this.#clock.monotonic();
    const view = await withDeadline(this.#clock, longestLookMs, () => new LateError(), this.#until, this.#look);
    this.#last = { at, view: new WeakRef(view) };
    return view;
  }
}

const longestLookMs = 10_000;

/** The runtime or a disk keeps nobody waiting for ever. */
export class LateError extends Error {
  override readonly name = "LateError";

  constructor() {
    super("the runtime or a disk does not answer");
  }
}
