import { onAbort } from "../../ground/base/index.ts";

/** Items from whoever pushes to the one who drains; the end comes after everything pushed before it. */
export class EventQueue<Item, Ending> {
  readonly #items: Item[] = [];
  #outcome: { readonly ending: Ending } | { readonly error: unknown } | undefined;
  #wake = (): void => {};

  push(item: Item): void {
    this.#items.push(item);
    this.#wake();
  }

  /** Only the first end counts. */
  end(ending: Ending): void {
    this.#outcome ??= { ending };
    this.#wake();
  }

  fail(error: unknown): void {
    this.#outcome ??= { error };
    this.#wake();
  }

  /** Throws the signal's reason when aborted. */
  async *drain(signal: AbortSignal): AsyncGenerator<Item, Ending> {
    using _ = onAbort(signal, () => this.#wake());
    for (;;) {
      signal.throwIfAborted();
      const item = this.#items.shift();
      if (item !== undefined) yield item;
      else if (this.#outcome === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      } else if ("error" in this.#outcome) throw this.#outcome.error;
      else return this.#outcome.ending;
    }
  }
}
