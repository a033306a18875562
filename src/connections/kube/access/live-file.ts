import { readFile, stat } from "node:fs/promises";
import { type Clock, isShortage } from "../../../ground/base/index.ts";

const lookEveryMs = 10_000;

/** A file that others replace now and then: read again when it has changed, looked at every ten seconds at most. */
export class LiveFile {
  readonly path: string;
  readonly #clock: Clock;
  #known: { readonly content: Buffer; readonly mark: string } | undefined;
  #lookedAt = 0;

  constructor(path: string, clock: Clock) {
    this.path = path;
    this.#clock = clock;
  }

  /**
   * Rejects as fs.readFile does when the file is gone; the last content is then forgotten. While the machine lacks
   * descriptors it stands: the calls that keep the node alive need none.
   */
  async read(): Promise<Buffer> {
    const now = this.#clock.monotonic();
    if (this.#known !== undefined && now - this.#lookedAt < lookEveryMs) return this.#known.content;
    this.#lookedAt = now;
    try {
      const { mtimeNs, size, ino, dev } = await stat(this.path, { bigint: true });
      const mark = `${dev}/${ino}/${size}/${mtimeNs}`;
      if (this.#known?.mark !== mark) this.#known = { content: await readFile(this.path), mark };
      return this.#known.content;
    } catch (error) {
      if (this.#known !== undefined && isShortage(error)) return this.#known.content;
      this.#known = undefined;
      throw error;
    }
  }

  /** Look at the file again at the next read, however recently that was done. */
  doubt(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }
}
