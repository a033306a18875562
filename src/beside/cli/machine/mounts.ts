import { realpath } from "node:fs/promises";
import { messageOf } from "../../../ground/base/index.ts";
import { run } from "./command.ts";

/** Unmounts all that is mounted below the directory, last mounted first; fails when something stays. */
export async function unmountBelow(directory: string): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const below = await mountsBelow(directory);
    if (below.length === 0) return;
    for (const point of below.toReversed()) {
      // Busy mounts are detached: their users are gone already or do not matter any more.
      await run("umount", [point]).catch(() => run("umount", ["-l", point]).catch(ignoreIfUnmounted));
    }
  }
  const left = await mountsBelow(directory);
  if (left.length > 0) throw new Error(`cannot unmount ${left.join(", ")}; unmount by hand, then try again`);
}

/** The kernel names mounts by their real path, whatever links lead there. */
async function mountsBelow(path: string): Promise<readonly string[]> {
  const { readMounts } = await import("../../../connections/host/index.ts");
  const directory = await realpath(path).catch(() => path);
  const points = (await readMounts()).map(({ mountPoint }) => mountPoint);
  return points.filter((point) => point === directory || point.startsWith(`${directory}/`));
}

/** Unmounting a shared mount may take its copies along; the next round looks at what is really left. */
function ignoreIfUnmounted(error: unknown): void {
  if (!/not mounted|no mount point|not found|no such file/i.test(messageOf(error))) throw error;
}
