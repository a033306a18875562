/** A file of a tar archive; directories and links carry no content. */
export type TarEntry =
  | {
      readonly type: "file";
      readonly path: string;
      readonly content: Buffer;
      readonly mode?: number;
      readonly owner?: number;
    }
  | { readonly type: "directory"; readonly path: string; readonly mode?: number; readonly owner?: number }
  | { readonly type: "symlink"; readonly path: string; readonly target: string };

const blockSize = 512;
const typeFlags = { file: "0", symlink: "2", directory: "5" } as const;

/** Writes a POSIX ustar archive. Times are zero, so equal input gives equal bytes and equal digests. */
export function tar(entries: readonly TarEntry[]): Buffer {
  const parts: Buffer[] = [];
  for (const entry of entries) {
    const content = entry.type === "file" ? entry.content : Buffer.alloc(0);
    parts.push(header(entry, content.length), content, Buffer.alloc(padding(content.length)));
  }
  parts.push(Buffer.alloc(2 * blockSize));
  return Buffer.concat(parts);
}

function header(entry: TarEntry, size: number): Buffer {
  const path = entry.type === "directory" && !entry.path.endsWith("/") ? `${entry.path}/` : entry.path;
  if (Buffer.byteLength(path) > 100) throw new RangeError(`tar: path "${path}" is longer than 100 bytes`);
  const owner = entry.type === "symlink" ? 0 : (entry.owner ?? 0);
  const block = Buffer.alloc(blockSize);
  block.write(path, 0);
  block.write(octal(modeOf(entry), 8), 100);
  block.write(octal(owner, 8), 108);
  block.write(octal(owner, 8), 116);
  block.write(octal(size, 12), 124);
  block.write(octal(0, 12), 136);
  block.write(" ".repeat(8), 148);
  block.write(typeFlags[entry.type], 156);
  if (entry.type === "symlink") block.write(entry.target, 157, 100);
  block.write("ustar\x0000", 257);
  const checksum = block.reduce((sum, byte) => sum + byte, 0);
  block.write(`${checksum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}

function modeOf(entry: TarEntry): number {
  if (entry.type === "symlink") return 0o777;
  return entry.mode ?? (entry.type === "directory" ? 0o755 : 0o644);
}

function octal(value: number, width: number): string {
  return `${value.toString(8).padStart(width - 1, "0")}\0`;
}

function padding(size: number): number {
  return (blockSize - (size % blockSize)) % blockSize;
}
