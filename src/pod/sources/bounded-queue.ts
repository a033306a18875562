import { waitFor } from "../../ground/base/index.ts";

/** First in, first out, at most `capacity` items: whoever puts into a full queue waits until someone takes. */
export class BoundedQueue<Item> {
  readonly #capacity: number;
  readonly #items: Item[] = [];
  readonly #takers = new Set<() => void>();
  readonly #putters = new Set<() => void>();

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
    wakeFirst(this.#takers);
  }

  async take(signal: AbortSignal): Promise<Item> {
    signal.throwIfAborted();
    while (this.#items.length === 0) await waitIn(this.#takers, signal);
    const item = this.#items.shift() as Item;
    wakeFirst(this.#putters);
    return item;
  }
}

function wakeFirst(waiting: ReadonlySet<() => void>): void {
  const [first] = waiting;
  first?.();
}

async function waitIn(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  await waitFor(signal, (done) => {
    waiting.add(done);
    return () => waiting.delete(done);
  });
}
