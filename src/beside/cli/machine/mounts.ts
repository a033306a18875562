import { readFile, realpath } from "node:fs/promises";
import { messageOf } from "../../../ground/base/index.ts";
import { run } from "./command.ts";

export interface Mount {
  readonly point: string;
  readonly type: string;
}

/** The mounts of this process, in the order they were made. */
export async function readMounts(): Promise<readonly Mount[]> {
  return parseMountinfo(await readFile("/proc/self/mountinfo", "utf8"));
}

export function parseMountinfo(text: string): readonly Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    const [before, after] = line.split(" - ");
    const point = before?.split(" ")[4];
    const type = after?.split(" ")[0];
    if (point !== undefined && type !== undefined) mounts.push({ point: unescapeMount(point), type });
  }
  return mounts;
}

/** Unmounts all that is mounted below the directory, last mounted first; fails when something stays. */
export async function unmountBelow(directory: string): Promise<void> {
  for (let round = 0; round < 5; round++) {
    const below = await mountsBelow(directory);
    if (below.length === 0) return;
    for (const { point } of below.toReversed()) {
      // Busy mounts are detached: their users are gone already or do not matter any more.
      await run("umount", [point]).catch(() => run("umount", ["-l", point]).catch(ignoreIfUnmounted));
    }
  }
  const left = (await mountsBelow(directory)).map(({ point }) => point);
  if (left.length > 0) throw new Error(`cannot unmount ${left.join(", ")}; unmount by hand, then try again`);
}

/** The kernel names mounts by their real path, whatever links lead there. */
async function mountsBelow(path: string): Promise<readonly Mount[]> {
  const directory = await realpath(path).catch(() => path);
  return (await readMounts()).filter(({ point }) => point === directory || point.startsWith(`${directory}/`));
}

/** Unmounting a shared mount may take its copies along; the next round looks at what is really left. */
function ignoreIfUnmounted(error: unknown): void {
  if (!/not mounted|no mount point|not found|no such file/i.test(messageOf(error))) throw error;
}

function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}
