import { lstat, rename, rmdir, unlink } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { HeldDirectory, isMissing } from "./held-directory.ts";

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
  let parent: HeldDirectory;
  try {
    parent = await HeldDirectory.open(dirname(path));
  } catch (error) {
    if (isMissing(error)) return;
    throw error;
  }
  using held = parent;
  const { mountId } = held;
  const removal: Removal = { held, path: dirname(path), mountId, deep: [], moved: 0 };
  await removeEntry(removal, held, basename(path), path, 0);
  for (let name = removal.deep.pop(); name !== undefined; name = removal.deep.pop()) {
    await removeEntry(removal, held, name, join(dirname(path), name), 0);
  }
}

interface Removal {
  /** Holds the tree that is removed. */
  readonly held: HeldDirectory;
  readonly path: string;
  readonly mountId: number;
  /** Directories from far below that were moved up beside the tree, to be removed after it. */
  readonly deep: string[];
  moved: number;
}

// One descriptor per level is held open; a pod may have nested directories far deeper than descriptors go.
const maxDepth = 100;
const filesAtOnce = 16;

async function removeEntry(
  removal: Removal,
  parent: HeldDirectory,
  name: string,
  path: string,
  depth: number,
  /** Undefined: not known. Wrong: the kernel refuses what does not fit. */
  isDirectory?: boolean,
): Promise<void> {
  const place = parent.path(name);
  try {
    if (!(isDirectory ?? (await lstat(place)).isDirectory())) {
      await unlink(place);
      return;
    }
    if (depth >= maxDepth) {
      await moveUp(removal, place, path);
      return;
    }
    await emptyDirectory(removal, parent, name, path, depth);
    await rmdir(place);
  } catch (error) {
    if (isMissing(error)) return;
    throw isBusy(error) ? new MountInTheWayError(path) : error;
  }
}

async function emptyDirectory(
  removal: Removal,
  parent: HeldDirectory,
  name: string,
  path: string,
  depth: number,
): Promise<void> {
  using directory = await parent.enter(name);
  if (directory.mountId !== removal.mountId) throw new MountInTheWayError(path);
  const entries = await directory.entries();
  const others = entries.filter((entry) => !entry.isDirectory());
  for (let start = 0; start < others.length; start += filesAtOnce) {
    await Promise.all(
      others
        .slice(start, start + filesAtOnce)
        .map((entry) => removeEntry(removal, directory, entry.name, join(path, entry.name), depth + 1, false)),
    );
  }
  for (const entry of entries) {
    if (entry.isDirectory()) {
      await removeEntry(removal, directory, entry.name, join(path, entry.name), depth + 1, true);
    }
  }
}

async function moveUp(removal: Removal, place: string, path: string): Promise<void> {
  const name = `.removing-${removal.moved++}-${basename(path)}`.slice(0, 255);
  try {
    await rename(place, removal.held.path(name));
  } catch (error) {
    // Another mount can't be moved into this one.
    if (error instanceof Error && "code" in error && error.code === "EXDEV") throw new MountInTheWayError(path);
    throw error;
  }
  removal.deep.push(name);
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "EBUSY";
}
