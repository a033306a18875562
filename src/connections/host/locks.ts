import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type Clock, hasCode } from "../../ground/base/index.ts";
import { inodeEvents, loadSyscalls, SyscallError } from "./syscalls.ts";

// flock could wait by itself, but then nothing could end the wait: its thread would hold up the exit of the process.
const lockPollMs = 200;
const contentionPollMs = 200;

/** A lock that lasts until it is disposed of or the process ends, however it ends. */
export type HeldLock = Disposable;

/** Waits for the exclusive lock on the file, which is made when missing. `onWait` is told once if it is taken. */
export async function acquireLockFile(
  path: string,
  { clock, onWait }: { clock: Clock; onWait: () => void },
  signal: AbortSignal,
): Promise<HeldLock> {
  const calls = await loadSyscalls();
  // A plain descriptor: a FileHandle that nobody refers to any more would be closed, and the lock lost.
  let fd: number | undefined;
  try {
    fd = openSync(path, "a+", 0o600);
    for (let waited = false; calls.tryFlock(fd) === "taken"; waited = true) {
      if (!waited) onWait();
      await clock.sleep(lockPollMs, signal);
    }
  } catch (error) {
    if (fd !== undefined) closeSync(fd);
    if (signal.aborted) throw error;
    throw new Error(`unable to acquire file lock on "${path}"`, { cause: error });
  }
  return holding(fd);
}

/** Notices when another process opens or deletes the file, from the moment it was made for as long as the process lives. */
export class LockContention {
  readonly #fd: number;

  private constructor(fd: number) {
    this.#fd = fd;
  }

  static async watch(path: string): Promise<LockContention> {
    return new LockContention((await loadSyscalls()).watchInode(path, inodeEvents.open | inodeEvents.deleteSelf));
  }

  /** Resolves when somebody wants the lock that we hold, also when that was while nobody waited here. */
  async noticed(clock: Clock, signal: AbortSignal): Promise<void> {
    while (!hasEvents(this.#fd)) await clock.sleep(contentionPollMs, signal);
  }
}

function hasEvents(fd: number): boolean {
  try {
    return readSync(fd, Buffer.alloc(4096)) > 0;
  } catch (error) {
    if (hasCode(error, "EAGAIN")) return false;
    throw error;
  }
}

export class DirectoryInUseError extends Error {
  override readonly name = "DirectoryInUseError";
  readonly directory: string;
  readonly holder: number | undefined;

  constructor(directory: string, holder: number | undefined) {
    const who = holder === undefined ? "another agent" : `another agent (process ${holder})`;
    super(
      `The root directory "${directory}" is in use by ${who}; stop that one first, or give this one its own --root-dir`,
    );
    this.directory = directory;
    this.holder = holder;
  }
}

/** Makes this process the only agent that works in the directory. The lock is on the directory itself: no file to leave behind. */
export async function claimDirectory(directory: string): Promise<HeldLock> {
  const calls = await loadSyscalls();
  const fd = openSync(directory, "r");
  try {
    if (calls.tryFlock(fd) === "held") return holding(fd);
    throw new DirectoryInUseError(directory, await lockHolder(fstatSync(fd).ino));
  } catch (error) {
    closeSync(fd);
    if (error instanceof SyscallError) throw new Error(`Cannot lock the directory "${directory}"`, { cause: error });
    throw error;
  }
}

function holding(fd: number): HeldLock {
  return { [Symbol.dispose]: () => closeSync(fd) };
}

/** The process that holds a flock on the inode, from `1: FLOCK  ADVISORY  WRITE 812 08:01:131077 0 EOF`. */
async function lockHolder(inode: number): Promise<number | undefined> {
  const text = await readFile("/proc/locks", "utf8").catch(() => "");
  const match = new RegExp(`FLOCK +ADVISORY +WRITE +(\\d+) +\\w+:\\w+:${inode} `).exec(text);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}
