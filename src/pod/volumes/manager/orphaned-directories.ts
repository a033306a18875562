import { rmdir } from "node:fs/promises";
import { HeldDirectory, removeTreeIn } from "../../../connections/host/index.ts";
import { type Clock, explain, isMissing, unlessAborted, withDeadline } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { PodPlaces } from "./places.ts";

export interface OrphanedDirectoriesReport {
  readonly removed: readonly PodUid[];
  readonly problems: readonly { readonly uid: PodUid; readonly message: string }[];
}

/** Directories that hold what may be somebody's data; they go only when they are empty. */
const neverRecursively = new Set(["volumes", "volumeDevices", "volume-subpaths"]);

const entriesAtOnce = 256;
// Millions of files take their time; a server that is away has been given up on before.
const patienceMs = 5 * 60_000;

/** Pods that are gone, and have left a directory. */
export async function orphanedDirectories(ports: {
  readonly places: Pick<PodPlaces, "uids">;
  readonly isKnown: (uid: PodUid) => boolean;
}): Promise<readonly PodUid[]> {
  return (await ports.places.uids()).filter((uid) => !ports.isKnown(uid));
}

/** Removes directories of pods that are gone, after what is still mounted below them. */
export async function cleanOrphanedDirectories(
  ports: {
    readonly places: PodPlaces;
    readonly isKnown: (uid: PodUid) => boolean;
    readonly release: (uid: PodUid) => Promise<void>;
    readonly clock: Clock;
  },
  signal: AbortSignal,
): Promise<OrphanedDirectoriesReport> {
  const removed: PodUid[] = [];
  const problems: { uid: PodUid; message: string }[] = [];
  const remove = async (uid: PodUid): Promise<void> => {
    await ports.release(uid);
    await removePodDirectory(ports.places.pod(uid));
  };
  const late = (): Error => new Error(`its volumes are still being removed after ${patienceMs / 60_000} minutes`);
  for (const uid of await orphanedDirectories(ports)) {
    signal.throwIfAborted();
    // The pod may have come back meanwhile.
    if (ports.isKnown(uid)) continue;
    try {
      // One whose file system hangs is left to it: the others can go.
      await withDeadline(ports.clock, patienceMs, late, signal, (bounded) => unlessAborted(remove(uid), bounded));
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
    await removeContent(directory);
    await rmdir(directory);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

async function removeContent(directory: string): Promise<void> {
  using held = await HeldDirectory.open(directory);
  await using reader = await held.read();
  for (let entries = await reader.next(entriesAtOnce); entries.length > 0; entries = await reader.next(entriesAtOnce)) {
    for (const entry of entries) {
      if (entry.isDirectory() && neverRecursively.has(entry.name.toString())) await rmdir(held.path(entry.name));
      else await removeTreeIn(held, entry.name, directory);
    }
  }
}
