/** What was left on a disk at a moment, in milliseconds since 1970. */
export interface DiskSample {
  readonly at: number;
  readonly availableBytes: number;
}

/** One sample an hour for a day, and the last one: how fast a disk fills up is seen over hours. */
export class DiskSamples {
  readonly #kept: DiskSample[] = [];
  #last: DiskSample | undefined;

  add(sample: DiskSample): void {
    this.#last = sample;
    const before = this.#kept.at(-1);
    if (before !== undefined && sample.at - before.at < 3_600_000) return;
    this.#kept.push(sample);
    if (this.#kept.length > 24) this.#kept.shift();
  }

  read(): readonly DiskSample[] {
    return this.#last === undefined || this.#last === this.#kept.at(-1) ? this.#kept : [...this.#kept, this.#last];
  }
}
