import { lstat, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifThere } from "../../../ground/base/index.ts";
import { type MountWork, unmountAllAt } from "./unmount.ts";

/**
 * Removes the mounts that gave containers a part of a volume: `<volume>/<container>/<index>`. Only mount points,
 * empty files and empty directories are removed, never content.
 */
export async function cleanSubPaths(volumeDirectory: string, work: MountWork): Promise<void> {
  for (const container of await ifThere(readdir(volumeDirectory), [])) {
    const directory = join(volumeDirectory, container);
    for (const index of await ifThere(readdir(directory), [])) await removeTarget(join(directory, index), work);
    await ifThere(rmdir(directory));
  }
  await ifThere(rmdir(volumeDirectory));
}

async function removeTarget(path: string, work: MountWork): Promise<void> {
  await unmountAllAt(path, work);
  const found = await lstat(path);
  if (found.isDirectory()) await rmdir(path);
  else if (found.size === 0) await unlink(path);
  else throw new Error(`${path} was made as the place of a mount but holds ${found.size} bytes; it was not removed`);
}
