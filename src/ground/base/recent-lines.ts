import { deflateRawSync, inflateRawSync } from "node:zlib";

interface PackedLines {
  readonly count: number;
  readonly bytes: Buffer;
}

/** Lines are packed so many at once, or when they have so many characters. */
const packedAtOnce = { lines: 64, characters: 32 * 1024 };
const longestLine = 16 * 1024;
/** Half of what is usual packs log lines nearly as well, and takes 48 KB for the moment instead of 260. */
const packing = { level: 1, windowBits: 13, memLevel: 5 };
/** In no line, whatever it says: it is our own mark between them. */
const between = "\0";

/** The last lines of a log, in memory that does not grow: all but the latest are packed, to a tenth of their size. */
export class RecentLines {
  readonly #packed: PackedLines[] = [];
  #packedLines = 0;
  #packedBytes = 0;
  #latest: string[] = [];
  #latestLength = 0;
  readonly #mostLines: number;
  readonly #mostBytes: number;

  constructor(mostLines = 1_000, mostBytes = 160 * 1024) {
    this.#mostLines = mostLines;
    this.#mostBytes = mostBytes;
  }

  add(line: string): void {
    const kept = line.trimEnd().slice(0, longestLine).replaceAll(between, "");
    this.#latest.push(kept);
    this.#latestLength += kept.length;
    if (this.#latest.length >= packedAtOnce.lines || this.#latestLength >= packedAtOnce.characters) this.#pack();
  }

  /** The oldest first. */
  all(): readonly string[] {
    const before = this.#packed.flatMap(({ bytes }) => inflateRawSync(bytes).toString().split(between));
    return [...before, ...this.#latest].slice(-this.#mostLines);
  }

  #pack(): void {
    const lines = this.#latest;
    const bytes = deflateRawSync(lines.join(between), packing);
    this.#packed.push({ count: lines.length, bytes });
    this.#packedLines += lines.length;
    this.#packedBytes += bytes.length;
    this.#latest = [];
    this.#latestLength = 0;
    for (let [oldest] = this.#packed; oldest !== undefined; [oldest] = this.#packed) {
      const isNeeded = this.#packedLines - oldest.count < this.#mostLines;
      if (isNeeded && this.#packedBytes <= this.#mostBytes) return;
      this.#packed.shift();
      this.#packedLines -= oldest.count;
      this.#packedBytes -= oldest.bytes.length;
    }
  }
}
