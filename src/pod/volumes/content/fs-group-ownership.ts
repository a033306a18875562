import type { Stats } from "node:fs";
import { constants } from "node:fs";
import { chmod, chown, lchown, lstat, open, readlink } from "node:fs/promises";
import {
  type DirectoryEntry,
  type FileName,
  HeldDirectory,
  openPath,
  walkTree,
} from "../../../connections/host/index.ts";
import { mapAtMost, messageOf } from "../../../ground/base/index.ts";

export interface GroupOwnership {
  readonly gid: number;
  readonly readOnly: boolean;
  /** OnRootMismatch: nothing is done when the top directory already looks as this walk would leave it. */
  readonly policy: "Always" | "OnRootMismatch";
}

export interface OwnershipProgress {
  /** Called now and then with the number of files looked at so far. */
  readonly onFiles: (files: number) => void;
  /** A file that can't be given away is left as it is; the walk goes on. */
  readonly onProblem: (path: string, message: string) => void;
}

const filesPerReport = 1_000;
const filesAtOnce = 8;
const setGroupId = 0o2000;

/**
 * Gives everything below a directory to a group, except what is mounted inside. Children come first, so that an
 * interrupted walk shows at the top.
 */
export async function giveToGroup(
  root: string,
  ownership: GroupOwnership,
  progress: OwnershipProgress,
  signal: AbortSignal,
): Promise<"skipped" | { readonly files: number }> {
  using directory = await HeldDirectory.open(root);
  if (ownership.policy === "OnRootMismatch" && isDone(await lstat(`${directory.self}/.`), ownership)) return "skipped";
  const giving = new Giving(ownership, progress);
  await walkTree(
    directory,
    {
      entries: (held, entries) => giving.entries(held, entries, signal),
      leave: (held) => giving.give(held.self, constants.O_DIRECTORY),
      // What was overlooked would stay closed to the pod; better to start over.
      whenGone: "fail",
    },
    signal,
  );
  return { files: giving.files };
}

class Giving {
  readonly #ownership: GroupOwnership;
  readonly #progress: OwnershipProgress;
  files = 0;

  constructor(ownership: GroupOwnership, progress: OwnershipProgress) {
    this.#ownership = ownership;
    this.#progress = progress;
  }

  async entries(
    directory: HeldDirectory,
    entries: readonly DirectoryEntry[],
    signal: AbortSignal,
  ): Promise<readonly FileName[]> {
    const others = entries.filter((entry) => !entry.isDirectory());
    await mapAtMost(filesAtOnce, others, async ({ name }) => {
      signal.throwIfAborted();
      await this.give(directory.path(name), constants.O_NOFOLLOW);
    });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  }

  /** Changes the very file that was looked at, whatever its name leads to a moment later. */
  async give(place: string | Buffer, flag: number): Promise<void> {
    const { gid } = this.#ownership;
    const file = await open(place, openPath | flag);
    try {
      const found = await file.stat();
      const self = `/proc/self/fd/${file.fd}`;
      try {
        if (found.isSymbolicLink()) {
          if (found.gid !== gid) await lchown(place, -1, gid);
        } else {
          const mode = wantedMode(found, this.#ownership);
          const changesGroup = found.gid !== gid;
          if (changesGroup) await chown(self, -1, gid);
          // Giving a file away clears its set-id bits, so the mode comes second.
          if (changesGroup || mode !== (found.mode & 0o7777)) await chmod(self, mode);
        }
      } catch (error) {
        this.#progress.onProblem((await readlink(self).catch(() => place)).toString(), messageOf(error));
      }
    } finally {
      await file.close();
    }
    this.files++;
    if (this.files % filesPerReport === 0) this.#progress.onFiles(this.files);
  }
}

function wantedMode(found: Stats, { readOnly }: GroupOwnership): number {
  const access = readOnly ? 0o440 : 0o660;
  const mode = (found.mode & 0o7777) | access;
  return found.isDirectory() ? mode | 0o110 | setGroupId : mode;
}

function isDone(root: Stats, { gid, readOnly }: GroupOwnership): boolean {
  if (!root.isDirectory() || root.gid !== gid) return false;
  const needed = readOnly ? 0o550 : 0o770;
  return (root.mode & needed) === needed && (root.mode & setGroupId) !== 0;
}
