import { closeSync, constants, type Dir, type Dirent, fstatSync, open, readFileSync, type Stats } from "node:fs";
import { opendir, readdir } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { isMissing } from "../../ground/base/index.ts";
import { loadSyscalls, SyscallError } from "./syscalls.ts";

// Not among Node's constants: the descriptor stands for the place in the tree, nothing is opened for reading.
export const openPath = 0o10000000;
const directoryOnly = openPath | constants.O_DIRECTORY;

const openFd = promisify(open);

/** A name in a directory: whatever bytes the kernel took for one, which need not be text. */
export type FileName = Buffer;

export interface DirectoryEntry {
  readonly name: FileName;
  isDirectory(): boolean;
}

/**
 * A directory held open. Paths built from it start at that very directory, so nobody can redirect them by exchanging
 * a parent for a link meanwhile: `/proc/self/fd/N/name` is what openat(2) and its relatives are for other programs.
 */
export class HeldDirectory implements Disposable {
  readonly fd: number;
  /** The directory itself. */
  readonly self: string;

  private constructor(fd: number) {
    this.fd = fd;
    this.self = `/proc/self/fd/${fd}`;
  }

  /** Links on the way, the last one included, are followed: the path is the caller's own. */
  static async open(path: string): Promise<HeldDirectory> {
    return new HeldDirectory(await openFd(path, directoryOnly));
  }

  /** A directory in this one; a link is refused with ENOTDIR or ELOOP. */
  async enter(name: FileName | string): Promise<HeldDirectory> {
    return new HeldDirectory(await openFd(this.path(name), directoryOnly | constants.O_NOFOLLOW));
  }

  /**
   * A directory in this one, on the same mount; a link is refused as by `enter`. What is mounted there is refused with
   * MountCrossedError and not asked anything: its server may be away.
   */
  async enterSameMount(name: FileName): Promise<HeldDirectory> {
    const place = this.path(name);
    const calls = await loadSyscalls();
    try {
      return new HeldDirectory(await calls.openSameMount(this.fd, name, "directory"));
    } catch (error) {
      if (isCode(error, "EXDEV")) throw new MountCrossedError(place);
      if (!isCode(error, "ENOSYS")) throw error;
    }
    const entered = await this.enter(name);
    if (entered.mountId === this.mountId) return entered;
    entered.close();
    throw new MountCrossedError(place);
  }

  /** The directory that this one is in now, wherever it has been moved. */
  async parent(): Promise<HeldDirectory> {
    return new HeldDirectory(await openFd(`${this.self}/..`, directoryOnly));
  }

  /** Usable with any function of node:fs that doesn't follow a last link, as long as the directory is held. */
  path(name: FileName | string): Buffer {
    const bytes = typeof name === "string" ? Buffer.from(name) : name;
    const isOne = bytes.length > 0 && !bytes.equals(dot) && !bytes.equals(dotDot) && !bytes.includes("/");
    if (!isOne) throw new Error(`${JSON.stringify(bytes.toString())} is not the name of something in a directory`);
    return Buffer.concat([Buffer.from(`${this.self}/`), bytes]);
  }

  /** What is in it, a part at a time: a directory may have more entries than fit into memory. */
  async read(): Promise<DirectoryReader> {
    if (this.stat().size > largestAtOnce) {
      return new StreamReader(await opendir(this.self, { encoding: asBuffers, bufferSize: entriesPerCall }));
    }
    return new ListReader(await readdir(this.self, { encoding: "buffer", withFileTypes: true }));
  }

  /** At once: the kernel has it in memory as long as the directory is held. Not for what a server holds. */
  stat(): Stats {
    return fstatSync(this.fd);
  }

  get mountId(): number {
    return mountIdOf(this.fd);
  }

  /** Never waits: nothing was opened for reading or writing. */
  close(): void {
    closeSync(this.fd);
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

// One trip to a thread for a small directory instead of four; a few thousand entries at most, on most file systems.
const largestAtOnce = 128 * 1024;
// A thread of Node's reads so many entries in one go.
const entriesPerCall = 256;
// Documented for readdir, and true of opendir as well; only the types of Node 20 don't know it.
const asBuffers = "buffer" as BufferEncoding;
const dot = Buffer.from(".");
const dotDot = Buffer.from("..");

/** Reads a directory in portions. */
export interface DirectoryReader extends AsyncDisposable {
  /** The next entries, at most so many; none at the end. */
  next(atMost: number): Promise<readonly DirectoryEntry[]>;
}

class ListReader implements DirectoryReader {
  readonly #entries: readonly DirectoryEntry[];
  #position = 0;

  constructor(entries: readonly unknown[]) {
    this.#entries = entries as readonly DirectoryEntry[];
  }

  async next(atMost: number): Promise<readonly DirectoryEntry[]> {
    const start = this.#position;
    this.#position += atMost;
    return this.#entries.slice(start, this.#position);
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}

class StreamReader implements DirectoryReader {
  readonly #stream: Dir;

  constructor(stream: Dir) {
    this.#stream = stream;
  }

  async next(atMost: number): Promise<readonly DirectoryEntry[]> {
    const entries: DirectoryEntry[] = [];
    while (entries.length < atMost) {
      const entry = (await this.#stream.read()) as unknown as (Omit<Dirent, "name"> & { name: Buffer }) | null;
      if (entry === null) break;
      entries.push(entry);
    }
    return entries;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stream.close();
  }
}

/** Something is mounted on a directory that was to be entered; nothing of it was touched. */
export class MountCrossedError extends Error {
  override readonly name = "MountCrossedError";

  constructor(place: Buffer) {
    super(`${place.toString()} is a mount point`);
  }
}

/** The mount that an open file belongs to, by the kernel's number for it. Read at once: nothing on a disk is asked. */
function mountIdOf(fd: number): number {
  const id = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
  if (id === undefined) throw new Error(`/proc/self/fdinfo/${fd} names no mount; the kernel is older than 3.15`);
  return Number(id);
}

/**
 * True when something is mounted exactly there, a bind mount of the same file system included. Only the directory
 * above is looked at, so the answer comes although the server of what is mounted is away.
 */
export async function isMountPoint(path: string): Promise<boolean> {
  const absolute = resolve(path);
  if (absolute === "/") return true;
  const calls = await loadSyscalls();
  try {
    using parent = await HeldDirectory.open(dirname(absolute));
    try {
      closeSync(await calls.openSameMount(parent.fd, Buffer.from(basename(absolute)), "anything"));
      return false;
    } catch (error) {
      if (isCode(error, "EXDEV")) return true;
      if (!isCode(error, "ENOSYS")) throw error;
    }
    const own = await openFd(absolute, openPath | constants.O_NOFOLLOW);
    try {
      return mountIdOf(own) !== parent.mountId;
    } finally {
      closeSync(own);
    }
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof SyscallError && error.code === code;
}
