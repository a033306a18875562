/** First in, first out, at most `capacity` items: whoever puts into a full queue waits until someone takes. */
export class BoundedQueue<Item> {
  readonly #capacity: number;
  readonly #items: Item[] = [];
  readonly #takers: (() => void)[] = [];
  readonly #putters: (() => void)[] = [];

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get size(): number {
    return this.#items.length;
  }

  async put(item: Item, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    // Once woken, finish even if aborted meanwhile: another waiter's wake must not get lost.
    while (this.#items.length >= this.#capacity) await waitIn(this.#putters, signal);
    this.#items.push(item);
    this.#takers.shift()?.();
  }

  async take(signal: AbortSignal): Promise<Item> {
    signal.throwIfAborted();
    while (this.#items.length === 0) await waitIn(this.#takers, signal);
    const item = this.#items.shift() as Item;
    this.#putters.shift()?.();
    return item;
  }
}

async function waitIn(waiting: (() => void)[], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const wake = (): void => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    };
    const onAbort = (): void => {
      waiting.splice(waiting.indexOf(wake), 1);
      reject(signal.reason);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    waiting.push(wake);
  });
}
