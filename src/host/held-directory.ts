import { constants, type Dirent } from "node:fs";
import { type FileHandle, open, readdir, readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";

// Not among Node's constants: the descriptor stands for the place in the tree, nothing is opened for reading.
export const openPath = 0o10000000;
const directoryOnly = openPath | constants.O_DIRECTORY;

/**
 * A directory held open. Paths built from it start at that very directory, so nobody can redirect them by exchanging
 * a parent for a link meanwhile: `/proc/self/fd/N/name` is what openat(2) and its relatives are for other programs.
 */
export class HeldDirectory implements AsyncDisposable {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Links on the way, the last one included, are followed: the path is the caller's own. */
  static async open(path: string): Promise<HeldDirectory> {
    return new HeldDirectory(await open(path, directoryOnly));
  }

  /** A directory in this one; a link is refused with ENOTDIR or ELOOP. */
  async enter(name: string): Promise<HeldDirectory> {
    return new HeldDirectory(await open(this.path(name), directoryOnly | constants.O_NOFOLLOW));
  }

  get fd(): number {
    return this.#handle.fd;
  }

  /** Usable with any function of node:fs that doesn't follow a last link, as long as the directory is held. */
  path(name: string): string {
    if (name === "" || name === "." || name === ".." || name.includes("/")) {
      throw new Error(`${JSON.stringify(name)} is not the name of something in a directory`);
    }
    return `/proc/self/fd/${this.#handle.fd}/${name}`;
  }

  /** The directory itself. */
  get self(): string {
    return `/proc/self/fd/${this.#handle.fd}`;
  }

  entries(): Promise<Dirent[]> {
    return readdir(this.self, { withFileTypes: true });
  }

  mountId(): Promise<number> {
    return mountIdOf(this.#handle.fd);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** The mount that an open file belongs to, by the kernel's number for it. */
async function mountIdOf(fd: number): Promise<number> {
  const text = await readFile(`/proc/self/fdinfo/${fd}`, "utf8");
  const id = /^mnt_id:\s*(\d+)$/m.exec(text)?.[1];
  if (id === undefined) throw new Error(`/proc/self/fdinfo/${fd} names no mount; the kernel is older than 3.15`);
  return Number(id);
}

/** True when something is mounted exactly there, a bind mount of the same file system included. */
export async function isMountPoint(path: string): Promise<boolean> {
  const absolute = resolve(path);
  if (absolute === "/") return true;
  let own: FileHandle;
  try {
    own = await open(absolute, openPath | constants.O_NOFOLLOW);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  try {
    const parent = await open(dirname(absolute), directoryOnly);
    try {
      const [ownMount, parentMount] = await Promise.all([mountIdOf(own.fd), mountIdOf(parent.fd)]);
      return ownMount !== parentMount;
    } finally {
      await parent.close();
    }
  } finally {
    await own.close();
  }
}

/** True for the error of a file that isn't there. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
