import { closeSync, constants, type Dirent, open, readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";

// Not among Node's constants: the descriptor stands for the place in the tree, nothing is opened for reading.
export const openPath = 0o10000000;
const directoryOnly = openPath | constants.O_DIRECTORY;

const openFd = promisify(open);

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
  async enter(name: string): Promise<HeldDirectory> {
    return new HeldDirectory(await openFd(this.path(name), directoryOnly | constants.O_NOFOLLOW));
  }

  /** Usable with any function of node:fs that doesn't follow a last link, as long as the directory is held. */
  path(name: string): string {
    if (name === "" || name === "." || name === ".." || name.includes("/")) {
      throw new Error(`${JSON.stringify(name)} is not the name of something in a directory`);
    }
    return `${this.self}/${name}`;
  }

  entries(): Promise<Dirent[]> {
    return readdir(this.self, { withFileTypes: true });
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

/** The mount that an open file belongs to, by the kernel's number for it. Read at once: nothing on a disk is asked. */
function mountIdOf(fd: number): number {
  const id = /^mnt_id:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1];
  if (id === undefined) throw new Error(`/proc/self/fdinfo/${fd} names no mount; the kernel is older than 3.15`);
  return Number(id);
}

/** True when something is mounted exactly there, a bind mount of the same file system included. */
export async function isMountPoint(path: string): Promise<boolean> {
  const absolute = resolve(path);
  if (absolute === "/") return true;
  let own: number;
  try {
    own = await openFd(absolute, openPath | constants.O_NOFOLLOW);
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
  try {
    using parent = await HeldDirectory.open(dirname(absolute));
    return mountIdOf(own) !== parent.mountId;
  } finally {
    closeSync(own);
  }
}

/** True for the error of a file that isn't there. */
export function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ENOTDIR");
}
