import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { systemClock } from "../../src/ground/base/index.ts";
import { rotateLog } from "../../src/pod/runtime/log-rotation-files.ts";

/** Writes a container's log as a runtime does, remembers what the container said, and rotates on request. */
export class ContainerLogWriter {
  readonly path: string;
  readonly #said: Buffer[] = [];
  /** What each line of the log says, partial ones too; only the last piece of what was said has an end. */
  readonly lines: Buffer[] = [];
  #file: number;
  #nanos = 1_767_323_045_000_000_000n;
  #rotations = 0;

  constructor(path: string) {
    this.path = path;
    mkdirSync(dirname(path), { recursive: true });
    this.#file = openSync(path, "a");
  }

  /** All that a reader of the whole log must see. */
  get said(): Buffer {
    return Buffer.concat(this.#said);
  }

  /** A line of any bytes but newlines, split into partial ones of at most `splitAt` bytes. */
  say(content: Buffer, stream: "stdout" | "stderr" = "stdout", splitAt = 16_384): void {
    let rest = content;
    const lines: Buffer[] = [];
    while (rest.length > splitAt) {
      lines.push(this.#head(stream, "P"), rest.subarray(0, splitAt), newline);
      this.lines.push(rest.subarray(0, splitAt));
      rest = rest.subarray(splitAt);
    }
    lines.push(this.#head(stream, "F"), rest, newline);
    this.lines.push(Buffer.concat([rest, newline]));
    this.#said.push(content, newline);
    for (let at = 0; at < lines.length; at += 3) writeSync(this.#file, Buffer.concat(lines.slice(at, at + 3)));
  }

  /**
   * As a runtime does it: `whileRenamed` happens while the old file has its new name and is still written to,
   * `lastWords` are written to it when the new one is already there.
   */
  async rotate(
    maxFiles: number,
    whileRenamed: () => Promise<void> = async () => {},
    lastWords?: Buffer,
  ): Promise<void> {
    const now = new Date(2026, 0, 1, 0, 0, this.#rotations++);
    const reopen = async (): Promise<void> => {
      await whileRenamed();
      const fresh = openSync(this.path, "a");
      if (lastWords !== undefined) {
        await systemClock.sleep(3, new AbortController().signal);
        this.say(lastWords);
      }
      closeSync(this.#file);
      this.#file = fresh;
    };
    await rotateLog({ path: this.path, maxFiles, now, reopen }, new AbortController().signal);
  }

  close(): void {
    closeSync(this.#file);
  }

  #head(stream: string, tag: string): Buffer {
    this.#nanos += 1_000n;
    const ms = Number(this.#nanos / 1_000_000n);
    const fraction = String(this.#nanos % 1_000_000_000n)
      .padStart(9, "0")
      .replace(/0+$/, "");
    return Buffer.from(`${new Date(ms).toISOString().slice(0, 19)}.${fraction}Z ${stream} ${tag} `);
  }
}

const newline = Buffer.from("\n");
