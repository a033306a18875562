import { realpath } from "node:fs/promises";
import {
  isMissing,
  isMountPoint,
  loadSyscalls,
  mountFlags,
  readMounts,
  SyscallError,
  unmountFlags,
} from "../../host/index.ts";

// More mounts on one point than any accident could pile up.
const mostStacked = 100;

/** Takes off whatever is mounted at the path, however often; what is mounted further inside goes first. */
export async function unmountAllAt(path: string): Promise<void> {
  for (let turn = 0; await isMountPoint(path); turn++) {
    if (turn === mostStacked) throw new Error(`${path} is still a mount point after ${mostStacked} unmounts`);
    await unmountOne(path);
  }
}

async function unmountOne(path: string): Promise<void> {
  const calls = await loadSyscalls();
  try {
    unlessGone(() => calls.unmount(path, unmountFlags.noFollow));
  } catch (error) {
    if (!(error instanceof SyscallError && error.code === "EBUSY")) throw error;
    calls.mount("none", path, "", mountFlags.private);
    if (!(await unmountWhere(path, (inside) => inside !== ""))) throw error;
    calls.unmount(path, unmountFlags.noFollow);
  }
}

/** Takes off every mount at the path or further inside, and what comes to light below those. */
export async function unmountAllBelow(path: string): Promise<void> {
  for (let turn = 0; await unmountWhere(path, () => true); turn++) {
    if (turn === mostStacked)
      throw new Error(`there are still mounts in ${path} after ${mostStacked} rounds of unmounts`);
  }
}

/** True when there was anything to take off. Reads the whole mount table, so it is for when that is needed. */
async function unmountWhere(path: string, applies: (inside: string) => boolean): Promise<boolean> {
  const root = await realPathOf(path);
  if (root === undefined) return false;
  const points = (await readMounts())
    .map(({ mountPoint }) => mountPoint)
    .filter((point) => (point === root || point.startsWith(`${root}/`)) && applies(point.slice(root.length)));
  if (points.length === 0) return false;
  const calls = await loadSyscalls();
  // A bind mount shares what happens inside it with its origin: taking off what lies deeper would take it off there
  // too, on the host, unless that bond is cut first.
  for (const point of points) unlessGone(() => calls.mount("none", point, "", mountFlags.private));
  // Deepest first; of those on one point the last made is on top.
  const depth = (point: string): number => point.split("/").length;
  for (const point of points.toReversed().toSorted((a, b) => depth(b) - depth(a))) {
    unlessGone(() => calls.unmount(point, unmountFlags.noFollow));
  }
  return true;
}

/** Mounts come and go with others' help, too; what is not mounted any more needs nothing done. */
function unlessGone(call: () => void): void {
  try {
    call();
  } catch (error) {
    if (!(error instanceof SyscallError && (error.code === "EINVAL" || error.code === "ENOENT"))) throw error;
  }
}

/** Mount points at the path or below it. */
export async function mountsBelow(path: string): Promise<readonly string[]> {
  const root = await realPathOf(path);
  if (root === undefined) return [];
  const points = (await readMounts()).map(({ mountPoint }) => mountPoint);
  return points.filter((point) => point === root || point.startsWith(`${root}/`));
}

async function realPathOf(path: string): Promise<string | undefined> {
  try {
    return await realpath(path);
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}
