import { createHash, type Hash } from "node:crypto";

const keptLines = 100_000;
const hashedAtOnce = 100_000;

/** Everything that happened, in order: two runs of a seed agree in every line. */
export class Trace {
  readonly #lines: string[] = [];
  readonly #now: () => number;
  readonly #hash: Hash = createHash("sha256");
  /** Lines that the hash has not seen yet: few long texts cost it less than many short ones. */
  #unhashed = "";

  constructor(now: () => number) {
    this.#now = now;
  }

  add(who: string, what: string): void {
    const line = `${(this.#now() / 1000).toFixed(4).padStart(10)} ${who} ${what}`;
    this.#unhashed += line;
    if (this.#unhashed.length > hashedAtOnce) this.#hashAll();
    this.#lines.push(line);
    if (this.#lines.length > keptLines * 1.5) this.#lines.splice(0, keptLines / 2);
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Stands for all lines so far, those that are no longer kept too. */
  digest(): string {
    this.#hashAll();
    return this.#hash.copy().digest("hex").slice(0, 16);
  }

  #hashAll(): void {
    this.#hash.update(this.#unhashed);
    this.#unhashed = "";
  }
}
