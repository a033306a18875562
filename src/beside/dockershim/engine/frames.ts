/** Which stream of a process a frame belongs to. */
export type FrameStream = "stdin" | "stdout" | "stderr";

export interface Frame {
  readonly stream: FrameStream;
  readonly content: Buffer;
}

const headBytes = 8;
const names: readonly FrameStream[] = ["stdin", "stdout", "stderr"];

/** Docker sent bytes that are no frame. */
class FrameError extends Error {
  override readonly name = "FrameError";
}

/**
 * Takes apart what Docker sends for a process without a terminal: frames of 8 bytes of head (stream, three zeros,
 * length) and their content, split anywhere. Content is passed on as it comes, so no frame is ever held as a whole.
 */
export class FrameReader {
  #head = Buffer.alloc(0);
  #stream: FrameStream = "stdout";
  #left = 0;

  push(chunk: Buffer): readonly Frame[] {
    const frames: Frame[] = [];
    let rest = chunk;
    while (rest.length > 0) {
      if (this.#left > 0) {
        const content = rest.subarray(0, this.#left);
        this.#left -= content.length;
        rest = rest.subarray(content.length);
        frames.push({ stream: this.#stream, content });
        continue;
      }
      const missing = headBytes - this.#head.length;
      this.#head = Buffer.concat([this.#head, rest.subarray(0, missing)]);
      rest = rest.subarray(missing);
      if (this.#head.length === headBytes) this.#begin();
    }
    return frames;
  }

  #begin(): void {
    const stream = names[this.#head[0] ?? 255];
    if (stream === undefined || this.#head.readUIntBE(1, 3) !== 0) {
      throw new FrameError(`docker sent "${this.#head.toString("hex")}" where a frame should begin`);
    }
    this.#stream = stream;
    this.#left = this.#head.readUInt32BE(4);
    this.#head = Buffer.alloc(0);
  }
}
