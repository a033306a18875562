import { constants, watch } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import { isMissing } from "../../../ground/base/index.ts";
import { isOld, type LastWritten, type LogEntry, parseEntry } from "./log-form.ts";
import { lineWith } from "./tail.ts";

/** Docker keeps this many older files beside the one it writes to; see the container's `LogConfig`. */
const olderFiles = 2;
const readBytes = 256 * 1024;
/** What Docker keeps of a container of ours. Of those that another shim has made it may have kept everything. */
const mostBytesBehind = 32 * 1024 * 1024;
/** A line has 16 KiB of text at the most, six times as much when all of it is escaped. */
const longestLine = 1024 * 1024;

interface OpenFile {
  readonly handle: FileHandle;
  readonly inode: number;
}

/** Docker's log of one container: read on from where one was, also when Docker begins a new file. */
export class EngineLog implements AsyncDisposable {
  readonly #path: string;
  #file: OpenFile | undefined;
  #offset = 0;
  #partial: Buffer = Buffer.alloc(0);
  #skipping: { readonly last: LastWritten; readonly seen: { count: number } } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Goes to where the entries after `last` begin; without one, to the beginning of all that is there. */
  async seek(last: LastWritten | undefined): Promise<void> {
    const found = last === undefined ? undefined : await this.#fileWith(last);
    // What was last may be gone; whatever is left is newer.
    if (last === undefined || found === undefined) return await this.#openOldest();
    // Parts of one long line have one time: go back far enough to count them all.
    this.#offset = last.count === 1 ? found.at : 0;
    this.#file = found.file;
    this.#skipping = { last, seen: { count: 0 } };
  }

  /** The newest file with the last entry in it, or the oldest where that is one of many parts. */
  async #fileWith(last: LastWritten): Promise<{ readonly file: OpenFile; readonly at: number } | undefined> {
    let found: { readonly file: OpenFile; readonly at: number } | undefined;
    for (const path of this.#paths()) {
      const file = await openFile(path);
      const at = file === undefined ? undefined : await lineWith(file.handle, `"time":"${last.time}"`);
      if (file !== undefined && at !== undefined) {
        await found?.file.handle.close();
        found = { file, at };
        if (last.count === 1) return found;
      } else {
        await file?.handle.close();
        if (found !== undefined) return found;
      }
    }
    return found;
  }

  /** The next entries, not all at once; undefined: there are none for now. */
  async read(): Promise<readonly LogEntry[] | undefined> {
    if (this.#file === undefined) {
      await this.#openOldest();
      if (this.#file === undefined) return undefined;
    }
    const buffer = Buffer.allocUnsafe(readBytes);
    const { bytesRead } = await this.#file.handle.read(buffer, 0, readBytes, this.#offset);
    if (bytesRead === 0) return (await this.#wasEmptied()) || (await this.#next()) ? [] : undefined;
    this.#offset += bytesRead;
    return this.#entries(buffer.subarray(0, bytesRead));
  }

  /** Calls when there may be more to read, until disposed of. Undefined where the kernel can't tell: it has to be looked. */
  onChange(act: () => void): Disposable | undefined {
    try {
      const watcher = watch(this.#path, { persistent: false }, act);
      watcher.on("error", act);
      return { [Symbol.dispose]: () => watcher.close() };
    } catch {
      // No file yet, or as many watches as the kernel allows.
      return undefined;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.handle.close();
  }

  #entries(chunk: Buffer): readonly LogEntry[] {
    const content = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    const end = content.lastIndexOf(10);
    this.#partial = Buffer.from(content.subarray(end + 1));
    if (this.#partial.length > longestLine) this.#partial = Buffer.alloc(0);
    if (end < 0) return [];
    const entries: LogEntry[] = [];
    for (const line of content.subarray(0, end).toString("utf8").split("\n")) {
      const entry = parseEntry(line);
      if (entry !== undefined && !this.#wasWritten(entry)) entries.push(entry);
    }
    return entries;
  }

  #wasWritten(entry: LogEntry): boolean {
    if (this.#skipping === undefined) return false;
    const { last, seen } = this.#skipping;
    if (isOld(entry, last, seen)) return true;
    if (entry.time !== last.time) this.#skipping = undefined;
    return false;
  }

  /** Newest first. */
  #paths(): readonly string[] {
    return [this.#path, ...Array.from({ length: olderFiles }, (_, index) => `${this.#path}.${index + 1}`)];
  }

  async #openOldest(): Promise<void> {
    for (const path of this.#paths().toReversed()) {
      this.#file = await openFile(path);
      if (this.#file === undefined) continue;
      // A line that this cuts in two is none.
      this.#offset = Math.max(0, (await this.#file.handle.stat()).size - mostBytesBehind);
      return;
    }
  }

  /** People make room by emptying the file that Docker writes to; it goes on at the beginning. */
  async #wasEmptied(): Promise<boolean> {
    const size = (await this.#file?.handle.stat())?.size ?? 0;
    if (size >= this.#offset) return false;
    this.#offset = 0;
    this.#partial = Buffer.alloc(0);
    return true;
  }

  /** Goes on to the file that Docker began after this one, if there is one. */
  async #next(): Promise<boolean> {
    const current = this.#file;
    if (current === undefined) return false;
    const paths = this.#paths();
    const inodes: (number | undefined)[] = [];
    for (const path of paths) inodes.push(await inodeOf(path));
    const at = inodes.indexOf(current.inode);
    if (at === 0 || inodes[0] === undefined) return false;
    // What came between the last look and the rotation is still in the old file.
    const { size } = await current.handle.stat();
    if (size > this.#offset) return true;
    const nextPath = at > 0 ? paths[at - 1] : paths.findLast((_, index) => inodes[index] !== undefined);
    const next = nextPath === undefined ? undefined : await openFile(nextPath);
    if (next === undefined) return false;
    await current.handle.close();
    this.#file = next;
    this.#offset = 0;
    this.#partial = Buffer.alloc(0);
    return true;
  }
}

async function openFile(path: string): Promise<OpenFile | undefined> {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
    return { handle, inode: (await handle.stat()).ino };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

async function inodeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).ino;
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
