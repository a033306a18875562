import type { FileHandle } from "node:fs/promises";

const blockBytes = 64 * 1024;

/** Whole lines at the end of a file, and where the last one ends. Reads no more than `limit` bytes. */
export async function wholeLinesAtEnd(file: FileHandle, limit: number): Promise<{ lines: string[]; end: number }> {
  const { size } = await file.stat();
  const from = Math.max(0, size - limit);
  const content = await readRange(file, from, size);
  const lastEnd = content.lastIndexOf(10);
  if (lastEnd < 0) return { lines: [], end: from === 0 ? 0 : size };
  const firstEnd = from === 0 ? -1 : content.indexOf(10);
  const lines = content.subarray(firstEnd + 1, lastEnd).toString("utf8");
  return { lines: lines === "" ? [] : lines.split("\n"), end: from + lastEnd + 1 };
}

/** Where the last occurrence of `mark` begins its line; undefined when there is none. Searches from the end. */
export async function lineWith(file: FileHandle, mark: string): Promise<number | undefined> {
  const { size } = await file.stat();
  const wanted = Buffer.from(mark);
  let after = Buffer.alloc(0);
  for (let end = size; end > 0; end -= blockBytes) {
    const from = Math.max(0, end - blockBytes);
    const block = Buffer.concat([await readRange(file, from, end), after]);
    const at = block.lastIndexOf(wanted);
    if (at >= 0) return await lineStart(file, from + at);
    after = block.subarray(0, wanted.length - 1);
  }
  return undefined;
}

async function lineStart(file: FileHandle, position: number): Promise<number> {
  for (let end = position; end > 0; end -= blockBytes) {
    const from = Math.max(0, end - blockBytes);
    const at = (await readRange(file, from, end)).lastIndexOf(10);
    if (at >= 0) return from + at + 1;
  }
  return 0;
}

async function readRange(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(to - from);
  let filled = 0;
  while (filled < buffer.length) {
    const { bytesRead } = await file.read(buffer, filled, buffer.length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
