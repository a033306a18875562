import type { Stats } from "node:fs";
import { constants } from "node:fs";
import { chmod, chown, lchown, lstat, open } from "node:fs/promises";
import { messageOf } from "../../base/index.ts";
import { HeldDirectory, openPath } from "../../host/index.ts";

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

/** Gives everything below a directory to a group. Children come first, so that an interrupted walk shows at the top. */
export async function giveToGroup(
  root: string,
  ownership: GroupOwnership,
  progress: OwnershipProgress,
  signal: AbortSignal,
): Promise<"skipped" | { readonly files: number }> {
  if (ownership.policy === "OnRootMismatch" && isDone(await lstat(root), ownership)) return "skipped";
  const walk: Walk = { ownership, progress, signal, files: 0 };
  using directory = await HeldDirectory.open(root);
  await walkDirectory(walk, directory, root);
  await give(walk, directory.self, root, constants.O_DIRECTORY);
  return { files: walk.files };
}

interface Walk {
  readonly ownership: GroupOwnership;
  readonly progress: OwnershipProgress;
  readonly signal: AbortSignal;
  files: number;
}

async function walkDirectory(walk: Walk, directory: HeldDirectory, path: string): Promise<void> {
  const entries = await directory.entries();
  const others = entries.filter((entry) => !entry.isDirectory());
  for (let start = 0; start < others.length; start += filesAtOnce) {
    walk.signal.throwIfAborted();
    await Promise.all(
      others
        .slice(start, start + filesAtOnce)
        .map(({ name }) => give(walk, directory.path(name), `${path}/${name}`, constants.O_NOFOLLOW)),
    );
  }
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    walk.signal.throwIfAborted();
    using child = await directory.enter(name);
    await walkDirectory(walk, child, `${path}/${name}`);
    await give(walk, directory.path(name), `${path}/${name}`, constants.O_NOFOLLOW);
  }
}

/** Changes the very file that was looked at, whatever its name leads to a moment later. */
async function give(walk: Walk, place: string, path: string, flag: number): Promise<void> {
  const file = await open(place, openPath | flag);
  try {
    const found = await file.stat();
    const self = `/proc/self/fd/${file.fd}`;
    try {
      if (found.isSymbolicLink()) {
        if (found.gid !== walk.ownership.gid) await lchown(place, -1, walk.ownership.gid);
      } else {
        const mode = wantedMode(found, walk.ownership);
        const changesGroup = found.gid !== walk.ownership.gid;
        if (changesGroup) await chown(self, -1, walk.ownership.gid);
        // Giving a file away clears its set-id bits, so the mode comes second.
        if (changesGroup || mode !== (found.mode & 0o7777)) await chmod(self, mode);
      }
    } catch (error) {
      walk.progress.onProblem(path, messageOf(error));
    }
  } finally {
    await file.close();
  }
  walk.files++;
  if (walk.files % filesPerReport === 0) walk.progress.onFiles(walk.files);
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
