import { readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { MountInTheWayError, removeTree } from "../../../connections/host/index.ts";
import { aFewAtOnce, explain, hasCode, ifThere, isMissing, mapAtMost } from "../../../ground/base/index.ts";
import type { PodLedger, PodUid } from "../../../ground/model/index.ts";
import type { VolumeFiles } from "../file-processes/volume-files.ts";
import { ownerOf, type VolumeKind } from "../kinds/kind.ts";
import { cleanSubPaths } from "../mounting/sub-path-cleanup.ts";
import type { FoundVolume, PodPlaces } from "./places.ts";
import { VolumeError } from "./volume-error.ts";

export interface ReleasePorts {
  readonly kinds: readonly VolumeKind[];
  readonly files: VolumeFiles;
  readonly ledger: PodLedger;
}

/**
 * Takes away every volume of a pod that is found on disk, whether this run of the agent made it or an earlier one:
 * first what containers were given of it, then the volume, then the empty directories that held it.
 */
export async function releaseVolumes(
  uid: PodUid,
  places: PodPlaces,
  { kinds, files, ledger }: ReleasePorts,
  signal: AbortSignal,
): Promise<void> {
  const problems = new Map<string, string>();
  const attempt = async (name: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      signal.throwIfAborted();
      problems.set(name, explain(error));
    }
  };
  let wasBlocked = false;
  const waitsFor = (name: string, text: string): void => {
    wasBlocked = true;
    ledger.block(uid, { reason: "UnmountingVolumes", message: `volumes are being unmounted: ${name} (${text})` });
  };
  const subPaths = places.subPaths(uid);
  // Also those of host paths, which have no directory of their own below the pod's.
  await mapAtMost(aFewAtOnce, await ifThere(readdir(subPaths), []), (name) =>
    attempt(name, () => cleanSubPaths(join(subPaths, name), files.mountWork(uid, signal))),
  );
  await mapAtMost(aFewAtOnce, await places.found(uid), (found) =>
    attempt(found.specName, async () => {
      if (problems.has(found.specName)) return;
      await tearDown(found, kinds, signal, (text) => waitsFor(found.specName, text));
    }),
  );
  if (wasBlocked) ledger.block(uid, undefined);
  if (problems.size > 0) {
    const names = [...problems.keys()].sort().join(" ");
    const message = `mounted volumes=[${names}]: ${[...problems.values()].join("; ")}`;
    throw new VolumeError(message, { isAnnounced: false, nextTryAt: undefined });
  }
  for (const kind of kinds) await kind.released?.(uid, signal);
  for (const holder of [...(await places.holders(uid)), subPaths]) await removeIfEmpty(holder);
  await removeTree(places.markers(uid));
}

async function tearDown(
  found: FoundVolume,
  kinds: readonly VolumeKind[],
  signal: AbortSignal,
  progress: (text: string) => void,
): Promise<void> {
  const kind = ownerOf(kinds, found.plugin);
  if (kind !== undefined) {
    await kind.tearDown(found, signal, progress);
    return;
  }
  // Whoever made it knows how to take it away; an empty directory is no loss.
  try {
    await rmdir(found.directory);
  } catch (error) {
    if (isMissing(error)) return;
    throw new Error(
      `${found.directory} is of a kind (${found.plugin}) that this agent does not know, and it is not empty; ` +
        "nothing in it was removed",
      { cause: error },
    );
  }
}

async function removeIfEmpty(directory: string): Promise<void> {
  try {
    await rmdir(directory);
  } catch (error) {
    if (isMissing(error)) return;
    if (hasCode(error, "EBUSY")) throw new MountInTheWayError(directory);
    throw error;
  }
}
