import { readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { explain } from "../../base/index.ts";
import { isMissing, removeTree } from "../../host/index.ts";
import type { PodUid } from "../../model/index.ts";
import type { PodPlaces } from "./places.ts";

export interface OrphanReport {
  readonly removed: readonly PodUid[];
  readonly problems: readonly { readonly uid: PodUid; readonly message: string }[];
}

/** Directories that hold what may be somebody's data; they go only when they are empty. */
const neverRecursively = new Set(["volumes", "volumeDevices", "volume-subpaths"]);

export async function cleanOrphanedPods(
  ports: {
    readonly places: PodPlaces;
    readonly isKnown: (uid: PodUid) => boolean;
    readonly release: (uid: PodUid) => Promise<void>;
  },
  signal: AbortSignal,
): Promise<OrphanReport> {
  const removed: PodUid[] = [];
  const problems: { uid: PodUid; message: string }[] = [];
  for (const uid of await ports.places.uids()) {
    signal.throwIfAborted();
    if (ports.isKnown(uid)) continue;
    try {
      await ports.release(uid);
      await removePodDirectory(ports.places.pod(uid));
      removed.push(uid);
    } catch (error) {
      signal.throwIfAborted();
      problems.push({ uid, message: `orphaned pod "${uid}" found, but ${explain(error)}` });
    }
  }
  return { removed, problems };
}

/** Removes what is left of a pod; nothing below a mount, and no volume. */
export async function removePodDirectory(directory: string): Promise<void> {
  try {
    for (const entry of await readdir(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (!entry.isDirectory()) await unlink(path);
      else if (neverRecursively.has(entry.name)) await rmdir(path);
      else await removeTree(path);
    }
    await rmdir(directory);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}
