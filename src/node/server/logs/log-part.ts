import { constants } from "node:fs";
import { type FileHandle, open, readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { hasCode } from "../../../ground/base/index.ts";
import { type RotatedLog, rotatedLogs } from "../../../ground/model/index.ts";

/** One opened file of a container's log. */
export interface LogPart {
  readonly name: string;
  readonly handle: FileHandle;
  readonly inode: number;
  readonly compressed: boolean;
  readonly modifiedMs: number;
  /** When it last got a new name, or was written to. */
  readonly changedMs: number;
  /** Bytes of a plain file when it was opened. */
  readonly size: number;
}

const chunkBytes = 256 * 1024;
const openTries = 10;

/** The files of a log: rotated ones oldest first, then the live one. Only those are listed that could be opened. */
export interface LogChain {
  readonly parts: readonly LogPart[];
  /** The stamps of all rotated files there were. */
  readonly stamps: ReadonlySet<string>;
}

/**
 * Opens all files of a log as they are at one moment. Rotation may go on meanwhile, so the directory is looked at
 * before and after; when it has changed, all is done anew.
 */
export async function openChain(path: string): Promise<LogChain> {
  for (let tries = 1; tries <= openTries; tries++) {
    const rotated = await listRotated(path);
    const parts = await openAll(path, rotated);
    if (parts === undefined) continue;
    const unchanged = isSame(rotated, await listRotated(path));
    if (unchanged && parts.length > 0) return { parts, stamps: new Set(rotated.map(({ stamp }) => stamp)) };
    await closeAll(parts);
    if (unchanged) throw new Error(`failed to open log file ${JSON.stringify(path)}: no such file or directory`);
  }
  throw new Error(`the files of ${path} change too fast to be read`);
}

/** undefined: one of them is gone already. What has the name of a file set aside but is none is left out. */
async function openAll(path: string, rotated: readonly RotatedLog[]): Promise<readonly LogPart[] | undefined> {
  const parts: LogPart[] = [];
  try {
    for (const { name, compressed } of rotated) {
      const part = await openIfThere(join(dirname(path), name), compressed);
      if (part === undefined) {
        await closeAll(parts);
        return undefined;
      }
      if (part !== "no file") parts.push(part);
    }
    const live = await openIfThere(path, false);
    if (live === "no file") throw new Error(`log file ${JSON.stringify(path)} is not a file`);
    if (live !== undefined) parts.push(live);
    return parts;
  } catch (error) {
    await closeAll(parts);
    throw error;
  }
}

export async function closeAll(parts: Iterable<LogPart>): Promise<void> {
  for (const { handle } of parts) await handle.close();
}

async function listRotated(path: string): Promise<readonly RotatedLog[]> {
  return rotatedLogs(basename(path), await readdir(dirname(path)));
}

/** Which file has the log's name now; undefined: none, as while it is being rotated. */
export async function liveInode(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function openIfThere(path: string, compressed: boolean): Promise<LogPart | "no file" | undefined> {
  let handle: FileHandle;
  try {
    handle = await openOwn(path);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
  const stats = await handle.stat();
  if (!stats.isFile()) {
    await handle.close();
    return "no file";
  }
  const { ino, mtimeMs, ctimeMs, size } = stats;
  return { name: basename(path), handle, inode: ino, compressed, modifiedMs: mtimeMs, changedMs: ctimeMs, size };
}

/** A link in a place that pods may write to could lead anywhere; only the one that cri-dockerd makes is followed. */
async function openOwn(path: string): Promise<FileHandle> {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  try {
    return await open(path, flags);
  } catch (error) {
    if (!hasCode(error, "ELOOP")) throw error;
    const target = await realpath(path);
    if (!/\/[0-9a-f]{64}-json\.log$/.test(target)) {
      throw new Error(`log file ${JSON.stringify(path)} is a link to a file that is no container's log`);
    }
    return await open(target, flags);
  }
}

/** The bytes of a part. A chunk is only valid until the next one is asked for. */
export async function* readPart(part: LogPart, from: number, to: number): AsyncGenerator<Buffer, void> {
  if (part.compressed) {
    // autoClose is off: who opened the part closes it.
    const packed = part.handle.createReadStream({ start: 0, autoClose: false });
    // A disk that can't be read fails the first of the two, which nobody else listens to.
    const unpacked = pipeline(packed, createGunzip(), () => {});
    for await (const chunk of unpacked) yield chunk as Buffer;
    return;
  }
  const buffer = Buffer.allocUnsafe(Math.min(chunkBytes, Math.max(1, to - from)));
  let position = from;
  while (position < to) {
    const { bytesRead } = await part.handle.read(buffer, 0, Math.min(buffer.length, to - position), position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
}

/** The size that a gzip file says its content has. */
export async function unpackedSize({ handle, size }: LogPart): Promise<number> {
  const trailer = Buffer.alloc(4);
  await handle.read(trailer, 0, 4, Math.max(0, size - 4));
  return trailer.readUInt32LE(0);
}

function isSame(a: readonly RotatedLog[], b: readonly RotatedLog[]): boolean {
  return a.length === b.length && a.every(({ stamp }, index) => stamp === b[index]?.stamp);
}
