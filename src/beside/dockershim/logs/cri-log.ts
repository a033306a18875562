import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ifThere } from "../../../ground/base/index.ts";
import { type LastWritten, lastWritten } from "./log-form.ts";
import { wholeLinesAtEnd } from "./tail.ts";

interface LogFile {
  readonly handle: FileHandle;
  /** Up to the end of the last line that is whole. */
  size: number;
}

const tailBytes = 1024 * 1024;
const longestTailBytes = 64 * tailBytes;

/** The log that the kubelet reads and rotates. What was written last stands in it, so nothing else has to be remembered. */
export class CriLog implements AsyncDisposable {
  readonly #path: string;
  #file: LogFile | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Opens it for more; resolves with what is there already. A line that a crash cut off is taken away. */
  async open(): Promise<LastWritten | undefined> {
    const handle = await openToAppend(this.#path);
    const old = this.#file;
    this.#file = { handle, size: 0 };
    // One that was opened before, in an attempt that failed later on.
    await old?.handle.close();
    const { last, end } = await endOf(handle);
    const { size } = await handle.stat();
    if (end < size) await handle.truncate(end);
    this.#file.size = end;
    return last ?? (await this.#lastOfRotated());
  }

  /** All of it or nothing: what was cut off by a full disk is taken back. */
  async write(text: string): Promise<void> {
    // Another one may be opened meanwhile.
    const file = this.#file;
    if (file === undefined) throw new Error("the log is not open");
    const bytes = Buffer.from(text);
    try {
      await file.handle.appendFile(bytes);
      file.size += bytes.length;
    } catch (error) {
      await file.handle.truncate(file.size).catch(() => {});
      throw error;
    }
  }

  /** Goes on in a new file: the old one was renamed by whoever rotates. */
  async reopen(): Promise<void> {
    const handle = await openToAppend(this.#path);
    const old = this.#file;
    this.#file = { handle, size: (await handle.stat()).size };
    await old?.handle.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.handle.close();
  }

  /** Just after a rotation the new file is empty, and what was last is in the newest of the old ones. */
  async #lastOfRotated(): Promise<LastWritten | undefined> {
    const prefix = `${basename(this.#path)}.`;
    const entries = await ifThere(readdir(dirname(this.#path), { withFileTypes: true }), []);
    const newest = entries
      .filter((entry) => entry.isFile() && entry.name.startsWith(prefix) && !/\.(gz|tmp)$/.test(entry.name))
      .map(({ name }) => name)
      .sort()
      .at(-1);
    if (newest === undefined) return undefined;
    await using file = await openFile(join(dirname(this.#path), newest), constants.O_RDONLY);
    return (await endOf(file)).last;
  }
}

/** Parts of a line that is longer than what was read have to be counted all, so more is read. */
async function endOf(file: FileHandle): Promise<{ last: LastWritten | undefined; end: number }> {
  for (let bytes = tailBytes; ; bytes *= 4) {
    const { lines, end } = await wholeLinesAtEnd(file, bytes);
    const last = lastWritten(lines);
    const isAllOfIt = end <= bytes || bytes >= longestTailBytes;
    if (last === undefined || last.count < lines.length || isAllOfIt) return { last, end };
  }
}

async function openToAppend(path: string): Promise<FileHandle> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  await clearTheWay(path);
  return await openFile(path, constants.O_RDWR | constants.O_APPEND | constants.O_CREAT);
}

/**
 * Only a file is a log. dockershim and cri-dockerd put a link to Docker's own file here: what is written through it would
 * be read again. Other links lead wherever somebody wants root to write, and a pipe that nobody reads stands still.
 */
async function clearTheWay(path: string): Promise<void> {
  const found = await ifThere(lstat(path));
  if (found !== undefined && !found.isFile() && !found.isDirectory()) await ifThere(unlink(path));
}

async function openFile(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o640);
  try {
    if (!(await file.stat()).isFile()) throw new Error(`"${path}" is no file`);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
