/** Work on one key runs one after another, in the order it came; work on different keys runs side by side. */
export class SerialByKey<Key> {
  readonly #last = new Map<Key, Promise<void>>();

  /** Number of keys with work waiting or running. */
  get size(): number {
    return this.#last.size;
  }

  async run<Result>(key: Key, work: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key);
    let done: () => void = () => {};
    const turn = new Promise<void>((resolve) => {
      done = resolve;
    });
    this.#last.set(key, turn);
    try {
      await before;
      return await work();
    } finally {
      done();
      if (this.#last.get(key) === turn) this.#last.delete(key);
    }
  }
}
