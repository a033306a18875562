import { chmod, mkdir, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMountPoint, loadSyscalls, MountInTheWayError, removeTree } from "../../../connections/host/index.ts";
import { ifThere } from "../../../ground/base/index.ts";
import { type MountWork, unmountAllAt, unmountAllBelow } from "../mounting/unmount.ts";
import type { VolumePlace } from "./kind.ts";

const markerPlugin = "kubernetes.io~empty-dir";

export type ScratchMedium =
  | { readonly type: "disk" }
  | { readonly type: "memory"; readonly sizeBytes: bigint }
  | { readonly type: "huge pages"; readonly pageBytes: bigint };

/** Marks a directory as complete, so that a restart of the agent need not guess. Wrapped: the directory serves another kind. */
export type ScratchName = { readonly place: VolumePlace; readonly wrapped: boolean };

/** True when an earlier call has finished the directory and its mount is still there. */
export async function isScratchReady({ place, wrapped }: ScratchName, medium: ScratchMedium): Promise<boolean> {
  if (medium.type !== "disk" && !(await isMountPoint(place.directory))) return false;
  return (await ifThere(stat(join(markerDirectory(place, wrapped), "ready")))) !== undefined;
}

/** Makes the directory and mounts its medium there unless that was done before. */
export async function makeScratch({ directory }: VolumePlace, medium: ScratchMedium): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o750 });
  if (medium.type !== "disk" && !(await isMountPoint(directory))) {
    if (medium.type === "memory") await mountMemory(directory, medium.sizeBytes);
    else await mountHugePages(directory, medium.pageBytes);
  }
  // Any user of the pod may write here; chmod, because the mode of mkdir is subject to the umask. In memory, as in /tmp,
  // only the owner of a file may remove it: pods know it so.
  await chmod(directory, medium.type === "memory" ? 0o1777 : 0o777);
}

export async function markScratchReady({ place, wrapped }: ScratchName): Promise<void> {
  const directory = markerDirectory(place, wrapped);
  await mkdir(directory, { recursive: true, mode: 0o750 });
  await writeFile(join(directory, "ready"), "", { mode: 0o644 });
}

/** The marker goes first: what is half removed must not look complete. */
export async function removeScratch({ place, wrapped }: ScratchName, work: MountWork): Promise<void> {
  await removeTree(markerDirectory(place, wrapped));
  await rmdir(dirname(markerDirectory(place, wrapped))).catch(() => {});
  await unmountAllAt(place.directory, work);
  try {
    await removeTree(place.directory);
  } catch (error) {
    if (!(error instanceof MountInTheWayError)) throw error;
    // Something that a container of the pod has mounted inside; its own data lives elsewhere and is not touched.
    await unmountAllBelow(place.directory, work);
    await removeTree(place.directory);
  }
}

function markerDirectory({ markers, specName }: VolumePlace, wrapped: boolean): string {
  return join(markers, markerPlugin, wrapped ? `wrapped_${specName}` : specName);
}

async function mountMemory(directory: string, bytes: bigint): Promise<void> {
  const calls = await loadSyscalls();
  try {
    // What a pod keeps in memory must not reach the disk through swap; kernels before 6.4 don't know the option.
    calls.mount("tmpfs", directory, "tmpfs", 0, `size=${bytes},noswap`);
  } catch {
    calls.mount("tmpfs", directory, "tmpfs", 0, `size=${bytes}`);
  }
}

async function mountHugePages(directory: string, pageBytes: bigint): Promise<void> {
  (await loadSyscalls()).mount("nodev", directory, "hugetlbfs", 0, `pagesize=${pageBytes}`);
}
