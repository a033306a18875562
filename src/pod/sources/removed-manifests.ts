import { basename } from "node:path";
import type { Clock } from "../../ground/base/index.ts";
import type { ManifestFile } from "./manifest-file.ts";

// When a manifest counts as removed, and its static pod is stopped: as soon as the kernel says that the file was deleted,
// else when it is missing in a listing and still not there a moment later. A directory that can't be listed, or a file
// that can't be read, says nothing: their pods stay.

type KnownManifests = ReadonlyMap<string, ManifestFile>;

// An editor that saves by renaming leaves a moment in which the file is not there.
const absenceMs = 20;

/**
 * The manifests that were deleted, by the kernel's notices, even if some are back by now: whoever does that wants the
 * pod started anew.
 */
export function removedByNotice(known: KnownManifests, deletedNames: ReadonlySet<string>): readonly string[] {
  return [...known.keys()].filter((path) => deletedNames.has(basename(path)));
}

/** Of the manifests that a listing lacks, those that are there after all; the others are removed. */
export async function notRemovedYet(
  known: KnownManifests,
  found: KnownManifests,
  ports: {
    readonly clock: Clock;
    readonly read: (paths: readonly string[], signal: AbortSignal) => Promise<readonly ManifestFile[]>;
  },
  signal: AbortSignal,
): Promise<readonly ManifestFile[]> {
  const missing = [...known.keys()].filter((path) => !found.has(path));
  if (missing.length === 0) return [];
  await ports.clock.sleep(absenceMs, signal);
  return await ports.read(missing, signal);
}
