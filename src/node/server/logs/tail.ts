import { type LogPart, readPart } from "./log-part.ts";

/** Where to begin: in which part, and there behind how many bytes (plain) or lines (compressed). */
export interface TailStart {
  readonly part: number;
  readonly skip: number;
}

const newline = 0x0a;
const blockBytes = 64 * 1024;

/** The beginning of the last `lines` lines of all parts together; all of it when there are fewer. */
export async function findTail(parts: readonly LogPart[], lines: number): Promise<TailStart> {
  const last = parts.length - 1;
  if (lines === 0) return { part: last, skip: parts[last]?.size ?? 0 };
  let wanted = lines;
  for (let index = last; index >= 0; index--) {
    const part = parts[index];
    if (part === undefined) break;
    if (part.compressed) {
      const count = await countLines(part);
      if (count >= wanted) return { part: index, skip: count - wanted };
      wanted -= count;
    } else {
      const found = await lineFromEnd(part, wanted);
      if (found.lines === wanted) return { part: index, skip: found.position };
      wanted -= found.lines;
    }
  }
  return { part: 0, skip: 0 };
}

/** Where the `wanted`-th last line that has an end begins, and how many such lines were found. */
async function lineFromEnd(part: LogPart, wanted: number): Promise<{ position: number; lines: number }> {
  const block = Buffer.allocUnsafe(blockBytes);
  let ends = 0;
  let at = part.size;
  while (at > 0) {
    const length = Math.min(blockBytes, at);
    at -= length;
    const { bytesRead } = await part.handle.read(block, 0, length, at);
    const bytes = block.subarray(0, bytesRead);
    for (let end = bytes.lastIndexOf(newline); end >= 0; end = end === 0 ? -1 : bytes.lastIndexOf(newline, end - 1)) {
      if (ends === wanted) return { position: at + end + 1, lines: ends };
      ends++;
    }
  }
  return { position: 0, lines: ends };
}

async function countLines(part: LogPart): Promise<number> {
  let count = 0;
  for await (const chunk of readPart(part, 0, Number.POSITIVE_INFINITY)) {
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, end + 1)) count++;
  }
  return count;
}

/** Drops the first lines of a stream of chunks. */
export class LineSkipper {
  #left: number;

  constructor(lines: number) {
    this.#left = lines;
  }

  take(chunk: Buffer): Buffer {
    let from = 0;
    while (this.#left > 0) {
      const end = chunk.indexOf(newline, from);
      if (end < 0) return chunk.subarray(chunk.length);
      from = end + 1;
      this.#left--;
    }
    return chunk.subarray(from);
  }
}
