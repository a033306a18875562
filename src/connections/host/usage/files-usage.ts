import { lstat, readdir } from "node:fs/promises";

const slash = Buffer.from("/");

export interface DirectoryUsage {
  readonly bytes: number;
  readonly inodes: number;
}

/**
 * What the files below a directory take on its own file system; a file with several names counts once. Looks at one
 * entry after the other, so that a large tree takes long rather than much. Names are bytes.
 */
export async function readDirectoryUsage(
  path: string,
  depth: "all" | "files directly in it",
  signal: AbortSignal,
): Promise<DirectoryUsage> {
  const seen = new Set<number>();
  const { dev } = await lstat(path);
  let bytes = 0;
  let inodes = 0;
  const top = Buffer.from(path);
  const waiting: Buffer[] = [top];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    signal.throwIfAborted();
    const stats = await lstat(next).catch(() => undefined);
    if (stats === undefined || stats.dev !== dev) continue;
    if (stats.nlink > 1 && !stats.isDirectory()) {
      if (seen.has(stats.ino)) continue;
      seen.add(stats.ino);
    }
    const isTop = next === top;
    if (depth === "all" || !isTop) {
      bytes += stats.blocks * 512;
      inodes++;
    }
    if (!stats.isDirectory() || (depth !== "all" && !isTop)) continue;
    const entries = await readdir(next, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
    const wanted = depth === "all" ? entries : entries.filter((entry) => !entry.isDirectory());
    for (const { name } of wanted) waiting.push(Buffer.concat([next, slash, name]));
  }
  return { bytes, inodes };
}
