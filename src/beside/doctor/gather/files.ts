import { constants, type StatsFs } from "node:fs";
import { type FileHandle, lstat, open, opendir, readlink, stat, statfs } from "node:fs/promises";
import { hasCode, ifThere, isMissing, messageOf } from "../../../ground/base/index.ts";

/** A file as it lies there, whoever may read it. */
export type FileFact =
  | {
      readonly path: string;
      readonly state: "there";
      /** The permission bits; where there is an ACL, those of the group are its mask: what anybody named in it has at most. */
      readonly mode: number;
      readonly uid: number;
      readonly gid: number;
      /** Where a symbolic link leads to, as it is written. */
      readonly linkTo?: string;
    }
  | { readonly path: string; readonly state: "absent" }
  | { readonly path: string; readonly state: "unreadable"; readonly problem: string };

const longestText = 256 * 1024;
const mostLinks = 40;
const longestMountInfo = 4 * 1024 * 1024;

/**
 * Reads files of this machine, and never waits for them: pipes are not opened for good, devices are not read, file
 * systems that lie elsewhere are not touched, and no more than a few bytes are taken.
 */
export class HostFiles {
  /** Before every path; tests have a machine of their own there. */
  readonly #root: string;

  constructor(root = "") {
    this.#root = root;
  }

  /** The text of a file; at most `most` bytes of it. */
  async text(path: string, most = longestText): Promise<string> {
    await refuseForeign(this.#at(path));
    await using file = await open(this.#at(path), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    if (!(await file.stat()).isFile()) throw new Error(`${path} is not a regular file`);
    return await readStart(file, most);
  }

  /** Undefined where there is no such file. */
  async textIfThere(path: string, most = longestText): Promise<string | undefined> {
    try {
      return await this.text(path, most);
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  /** Names in a directory, at most so many; none where there is no such directory. */
  async names(path: string, most = 2_000): Promise<readonly string[]> {
    const names: string[] = [];
    try {
      await refuseForeign(this.#at(path));
      for await (const { name } of await opendir(this.#at(path))) {
        if (names.length >= most) break;
        names.push(name);
      }
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
    return names.sort();
  }

  async isThere(path: string): Promise<boolean> {
    return (await this.fact(path)).state === "there";
  }

  async link(path: string): Promise<string | undefined> {
    return await readlink(this.#at(path)).catch(() => undefined);
  }

  /**
   * Where a path leads for a process. Links are its own: followed by us, one that begins at "/" would lead to a file of
   * the machine, which we would then read, or have somebody change. So are its mounts: a pod may have those of a file
   * server that never answers, and nothing beyond them is touched.
   */
  async within(pid: number, path: string): Promise<string> {
    const root = `/proc/${pid}/root`;
    const foreign = await this.#foreignPoints(pid);
    const waiting = path.split("/");
    let current: string[] = [];
    for (let links = 0; waiting.length > 0; ) {
      const name = waiting.shift() ?? "";
      if (name === "" || name === ".") continue;
      if (name === "..") {
        current.pop();
        continue;
      }
      const point = ["", ...current, name].join("/");
      if (foreign.has(point)) {
        throw new Error(`${path} of process ${pid} lies on ${point}, which may wait for another machine`);
      }
      const target = await this.link(`${root}${point}`);
      if (target === undefined) current.push(name);
      else {
        if (++links > mostLinks) throw new Error(`${path}: more than ${mostLinks} links`);
        if (target.startsWith("/")) current = [];
        waiting.unshift(...target.split("/"));
      }
    }
    return [root, ...current].join("/");
  }

  async fact(path: string): Promise<FileFact> {
    try {
      await refuseForeign(this.#at(path));
      const own = await lstat(this.#at(path));
      const linkTo = own.isSymbolicLink() ? await readlink(this.#at(path)) : undefined;
      const { mode, uid, gid } = linkTo === undefined ? own : await stat(this.#at(path));
      return { path, state: "there", mode: mode & 0o7777, uid, gid, ...(linkTo !== undefined && { linkTo }) };
    } catch (error) {
      if (isMissing(error)) return { path, state: "absent" };
      return { path, state: "unreadable", problem: messageOf(error) };
    }
  }

  /** How full the file system is that holds the path; undefined: there is no such path. */
  async fileSystem(path: string): Promise<StatsFs | undefined> {
    await refuseForeign(this.#at(path));
    return await ifThere(statfs(this.#at(path)));
  }

  async #foreignPoints(pid: number): Promise<ReadonlySet<string>> {
    const { foreignPointsIn } = await import("../../../connections/host/index.ts");
    // Without a table of mounts nobody can tell.
    return await foreignPointsIn((await this.textIfThere(`/proc/${pid}/mountinfo`, longestMountInfo)) ?? "");
  }

  #at(path: string): string {
    return `${this.#root}${path}`;
  }
}

/** Files of the kernel have no size: they are read until they end. */
async function readStart(file: FileHandle, most: number): Promise<string> {
  const chunks: Buffer[] = [];
  let left = most;
  while (left > 0) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(left, 32 * 1024)), 0, undefined, null);
    if (bytesRead === 0) break;
    chunks.push(buffer.subarray(0, bytesRead));
    left -= bytesRead;
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** A file server that is gone would hold a thread, and with it the end of the process. */
async function refuseForeign(path: string): Promise<void> {
  if (/^\/(?:proc|sys|dev)\//.test(path)) return;
  const { followOnDisks } = await import("../../../connections/host/index.ts");
  try {
    const found = await followOnDisks(Buffer.from(path), "/");
    if ("mountPoint" in found) {
      throw new Error(`${path} lies on ${found.mountPoint}, which may wait for another machine: it was not touched`);
    }
  } catch (error) {
    // Without a table of mounts nobody can tell.
    if (!hasCode(error, "ENOENT")) throw error;
  }
}
