import { randomUUID } from "node:crypto";
import { mkdir, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { hasCode, ifThere, isMissing, mapAtMost } from "../../ground/base/index.ts";
import { type FileName, HeldDirectory, MountCrossedError } from "./held-directory.ts";

/** Something is mounted where files were to be removed; nothing of it was touched. */
export class MountInTheWayError extends Error {
  override readonly name = "MountInTheWayError";
  readonly path: string;

  constructor(path: string) {
    super(`cannot delete directory ${path}: it is a mount point`);
    this.path = path;
  }
}

/**
 * Removes whatever is at the path. Follows no link and enters no other mount, even if somebody exchanges directories
 * meanwhile: what others have mounted below keeps its data, and an error tells where it is.
 */
export async function removeTree(path: string): Promise<void> {
  using held = await ifThere(HeldDirectory.open(dirname(path)));
  if (held === undefined) return;
  await removeTreeIn(held, Buffer.from(basename(path)), dirname(path));
}

/** The same, by its name in a directory; the path of that is for messages. */
export async function removeTreeIn(held: HeldDirectory, name: FileName, directory: string): Promise<void> {
  const removal: Removal = { held, deep: [], inLast: 0 };
  await removeEntry(removal, held, name, pathOf(directory, name), 0);
  for (let moved = removal.deep.pop(); moved !== undefined; moved = removal.deep.pop()) {
    // What is moved up from this one must not land in itself, nor in one that was there before it.
    removal.inLast = mostInOne;
    await removeEntry(removal, held, Buffer.from(moved), join(directory, moved), 0);
  }
}

interface Removal {
  /** Holds the tree that is removed. */
  readonly held: HeldDirectory;
  /** Directories beside the tree into which those from far below were moved, to be removed after it. */
  readonly deep: string[];
  /** How many are in the last of them. */
  inLast: number;
}

// As many as every file system takes; a pod may have millions of directories that deep, and their names are not kept.
const mostInOne = 10_000;

// One descriptor per level is held open; a pod may have nested directories far deeper than descriptors go.
const maxDepth = 100;
const filesAtOnce = 16;
const entriesAtOnce = 1_024;
// Somebody who still makes files while we remove them is given up on after so many looks, not waited for.
const mostLooks = 10;

async function removeEntry(
  removal: Removal,
  parent: HeldDirectory,
  name: FileName,
  /** For messages. */
  path: string,
  depth: number,
  /** Undefined: not known. Wrong: the kernel refuses what does not fit. */
  isDirectory?: boolean,
): Promise<void> {
  const place = parent.path(name);
  try {
    if (!(isDirectory ?? (await isDirectoryAt(parent, name, path)))) {
      await unlink(place);
      return;
    }
    if (depth >= maxDepth) {
      await moveUp(removal, place, path);
      return;
    }
    await removeDirectory(removal, parent, name, path, depth);
  } catch (error) {
    if (isMissing(error)) return;
    throw hasCode(error, "EBUSY") ? new MountInTheWayError(path) : error;
  }
}

/** Without a look at what is mounted there. */
async function isDirectoryAt(parent: HeldDirectory, name: FileName, path: string): Promise<boolean> {
  try {
    using _entered = await parent.enterSameMount(name);
    return true;
  } catch (error) {
    if (error instanceof MountCrossedError) throw new MountInTheWayError(path);
    if (hasCode(error, "ENOTDIR") || hasCode(error, "ELOOP")) return false;
    throw error;
  }
}

async function removeDirectory(
  removal: Removal,
  parent: HeldDirectory,
  name: FileName,
  path: string,
  depth: number,
): Promise<void> {
  for (let look = 1; ; look++) {
    await emptyDirectory(removal, parent, name, path, depth);
    try {
      await rmdir(parent.path(name));
      return;
    } catch (error) {
      // A file system may leave out entries that move while others are removed.
      if (!hasCode(error, "ENOTEMPTY") || look === mostLooks) throw error;
    }
  }
}

async function emptyDirectory(
  removal: Removal,
  parent: HeldDirectory,
  name: FileName,
  path: string,
  depth: number,
): Promise<void> {
  let entered: HeldDirectory;
  try {
    entered = await parent.enterSameMount(name);
  } catch (error) {
    throw error instanceof MountCrossedError ? new MountInTheWayError(path) : error;
  }
  using directory = entered;
  await using reader = await directory.read();
  for (let entries = await reader.next(entriesAtOnce); entries.length > 0; entries = await reader.next(entriesAtOnce)) {
    const others = entries.filter((entry) => !entry.isDirectory());
    await mapAtMost(filesAtOnce, others, (entry) =>
      removeEntry(removal, directory, entry.name, pathOf(path, entry.name), depth + 1, false),
    );
    for (const entry of entries) {
      if (!entry.isDirectory()) continue;
      await removeEntry(removal, directory, entry.name, pathOf(path, entry.name), depth + 1, true);
    }
  }
}

/** Names need not be text; what people read has to be. */
function pathOf(directory: string, name: FileName): string {
  return join(directory, name.toString());
}

async function moveUp(removal: Removal, place: Buffer, path: string): Promise<void> {
  let holder = removal.deep.at(-1);
  if (holder === undefined || removal.inLast === mostInOne) {
    // Not by a name that another removal beside this one takes.
    holder = `.removing-${randomUUID()}`;
    await mkdir(removal.held.path(holder), { mode: 0o700 });
    removal.deep.push(holder);
    removal.inLast = 0;
  }
  try {
    // Not by its own name, which may be as long as names can be.
    await rename(place, Buffer.concat([removal.held.path(holder), Buffer.from(`/${removal.inLast++}`)]));
  } catch (error) {
    // Another mount can't be moved into this one.
    if (hasCode(error, "EXDEV")) throw new MountInTheWayError(path);
    throw error;
  }
}
