/**
 * News that carry no more than what they are about. Who has them and who waits for them know the topic, not each other,
 * so that it does not matter which of the two is made first.
 */
export class Topic<About extends readonly unknown[] = []> {
  readonly #listeners = new Set<(...about: About) => void>();

  /** Bound, so that it can be handed out as a port. */
  readonly tell = (...about: About): void => {
    for (const listener of this.#listeners) listener(...about);
  };

  /** Returns how to stop listening. */
  on(listener: (...about: About) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
