import { constants } from "node:fs";
import { type FileHandle, open, readdir, rename, rm, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { removeTree } from "../../connections/host/index.ts";
import { hasCode, isThere } from "../../ground/base/index.ts";
import { type RotatedLog, rotatedLogs, rotationStamp } from "../../ground/model/index.ts";

export interface Rotation {
  /** The live file. */
  readonly path: string;
  /** How many files there may be, the live one included. */
  readonly maxFiles: number;
  readonly now: Date;
  /** Makes the runtime write to a new file of the log's name. */
  readonly reopen: () => Promise<void>;
}

/**
 * Sets a log aside and has the runtime begin a new one. The newest file set aside stays as it is until the next
 * rotation, for those who still read it; older ones are compressed, the oldest deleted.
 */
export async function rotateLog({ path, maxFiles, now, reopen }: Rotation, signal: AbortSignal): Promise<void> {
  await removeLeftovers(path);
  const kept = await dropOldest(path, maxFiles - 2);
  for (const { name, compressed } of kept) {
    if (!compressed) await compress(join(dirname(path), name), signal);
  }
  const aside = `${path}.${rotationStamp(now, kept.at(-1)?.stamp)}`;
  await rename(path, aside);
  try {
    await reopen();
  } catch (error) {
    // Unless a new file is there the runtime still writes to the old one, which then must have its name back.
    if (!(await isThere(path))) await rename(aside, path);
    throw new Error(`the runtime does not reopen the log ${path}`, { cause: error });
  }
}

/** What an interrupted rotation left: unfinished files, and files that were compressed but not yet removed. */
async function removeLeftovers(path: string): Promise<void> {
  const directory = dirname(path);
  const names = new Set(await readdir(directory));
  const stamped = new RegExp(`^${escaped(basename(path))}\\.\\d{8}-\\d{6}(\\.tmp)?$`);
  for (const name of names) {
    const [, isUnfinished] = stamped.exec(name) ?? [undefined, undefined];
    if (!stamped.test(name)) continue;
    if (isUnfinished !== undefined || names.has(`${name}.gz`)) await removeTree(join(directory, name));
  }
}

async function dropOldest(path: string, keep: number): Promise<readonly RotatedLog[]> {
  const directory = dirname(path);
  const all = rotatedLogs(basename(path), await readdir(directory));
  const surplus = Math.max(0, all.length - Math.max(0, keep));
  for (const { name } of all.slice(0, surplus)) await removeTree(join(directory, name));
  return all.slice(surplus);
}

async function compress(path: string, signal: AbortSignal): Promise<void> {
  const unfinished = `${path}.tmp`;
  const source = await openRegularFile(path);
  if (source !== undefined) {
    try {
      const { mode, atime, mtime } = await source.stat();
      // Closed by the pipeline, as the source is.
      const output = await open(unfinished, "wx", mode & 0o7777);
      await pipeline(source.createReadStream(), createGzip(), output.createWriteStream(), { signal });
      // The time of its last line, by which readers know whether the file is of interest.
      await utimes(unfinished, atime, mtime);
      await rename(unfinished, `${path}.gz`);
    } catch (error) {
      await source.close().catch(() => {});
      await rm(unfinished, { force: true });
      throw new Error(`cannot compress ${path}`, { cause: error });
    }
  }
  await removeTree(path);
}

/**
 * A pod that can write here could plant a link, to have any file of the node copied to where it can read it, or a pipe
 * that keeps whoever opens it.
 */
async function openRegularFile(path: string): Promise<FileHandle | undefined> {
  try {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    return undefined;
  } catch (error) {
    if (hasCode(error, "ELOOP", "ENXIO")) return undefined;
    throw error;
  }
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
