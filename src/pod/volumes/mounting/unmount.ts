import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import {
  isMountPoint,
  loadSyscalls,
  mountFlags,
  type RunTool,
  readMounts,
  unmountFlags,
} from "../../../connections/host/index.ts";
import { type Clock, ifThere, withDeadline } from "../../../ground/base/index.ts";

// More mounts on one point than any accident could pile up.
const mostStacked = 100;

/** Who takes mounts off: the kernel may have to wait for what is mounted there, and whoever asks it waits, too. */
export interface MountWork {
  unmount(point: string): Promise<void>;
  /** What is mounted inside from now on, or taken off there, no longer shows elsewhere. */
  makePrivate(point: string): Promise<void>;
}

/** By this process, on Node's few threads: for what is in memory or on a disk of the node's own. */
export const mountWorkHere: MountWork = {
  unmount: async (point) => (await loadSyscalls()).unmount(point, unmountFlags.noFollow),
  makePrivate: async (point) => (await loadSyscalls()).mount("none", point, "", mountFlags.private),
};

/** Takes off whatever is mounted at the path, however often; what is mounted further inside goes first. */
export async function unmountAllAt(path: string, work: MountWork): Promise<void> {
  for (let turn = 0; await isMountPoint(path); turn++) {
    if (turn === mostStacked) throw new Error(`${path} is still a mount point after ${mostStacked} unmounts`);
    await unmountOne(path, work);
  }
}

async function unmountOne(path: string, work: MountWork): Promise<void> {
  try {
    await unlessGone(path, () => work.unmount(path));
  } catch (error) {
    if (!(await unmountWhere(path, (inside) => inside !== "", work))) throw error;
    await work.unmount(path);
  }
}

const unmountMs = 60_000;

/**
 * Takes off a mount that may have to wait for a disk or a server, by a program that waits in our place. After a minute
 * we insist.
 */
export async function unmountPatiently(
  path: string,
  { run, clock }: { readonly run: RunTool; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const late = new Error(`${path} can't be unmounted: what is mounted there does not answer`);
  const within = (args: readonly string[]): Promise<string> =>
    withDeadline(
      clock,
      unmountMs,
      () => late,
      signal,
      (bounded) => run("umount", args, bounded),
    );
  try {
    await within([path]);
  } catch (error) {
    if (error !== late) throw error;
    await within(["-f", path]);
  }
}

/** Takes off every mount at the path or further inside, and what comes to light below those. */
export async function unmountAllBelow(path: string, work: MountWork): Promise<void> {
  for (let turn = 0; await unmountWhere(path, () => true, work); turn++) {
    if (turn === mostStacked)
      throw new Error(`there are still mounts in ${path} after ${mostStacked} rounds of unmounts`);
  }
}

/** True when there was anything to take off. Reads the whole mount table, so it is for when that is needed. */
async function unmountWhere(path: string, applies: (inside: string) => boolean, work: MountWork): Promise<boolean> {
  const root = await realPathOf(path);
  if (root === undefined) return false;
  const all = (await readMounts()).map(({ mountPoint }) => mountPoint).filter((point) => isWithin(root, point));
  const points = all.filter((point) => applies(point.slice(root.length)));
  if (points.length === 0) return false;
  // A bind mount shares what happens inside it with its origin: taking off what lies deeper would take it off there
  // too, on the host, unless that bond is cut first. Only of those that hold others: to cut it the kernel looks at what
  // is mounted there, and would wait for a server that is away.
  const holders = directoriesAbove(points);
  for (const point of new Set(all)) {
    if (holders.has(point)) await unlessGone(point, () => work.makePrivate(point));
  }
  // Deepest first; of those on one point the last made is on top.
  const depth = (point: string): number => point.split("/").length;
  for (const point of points.toReversed().toSorted((a, b) => depth(b) - depth(a))) {
    await unlessGone(point, () => work.unmount(point));
  }
  return true;
}

/** Mounts come and go with others' help, too; what is not mounted any more needs nothing done. */
async function unlessGone(point: string, call: () => Promise<void>): Promise<void> {
  try {
    await call();
  } catch (error) {
    // The table, and not the place itself, which may lie on something that does not answer.
    if ((await readMounts()).some(({ mountPoint }) => mountPoint === point)) throw error;
  }
}

/** Mount points at the path or below it. */
export async function mountsBelow(path: string): Promise<readonly string[]> {
  const root = await realPathOf(path);
  if (root === undefined) return [];
  return (await readMounts()).map(({ mountPoint }) => mountPoint).filter((point) => isWithin(root, point));
}

function isWithin(root: string, point: string): boolean {
  return point === root || point.startsWith(`${root}/`);
}

function directoriesAbove(points: readonly string[]): ReadonlySet<string> {
  const above = new Set<string>();
  for (const point of points) {
    for (let directory = dirname(point); !above.has(directory); directory = dirname(directory)) above.add(directory);
  }
  return above;
}

/** Only the way there is looked at: what is mounted at its end may not answer. */
export async function realPathOf(path: string): Promise<string | undefined> {
  const parent = await ifThere(realpath(dirname(path)));
  return parent && join(parent, basename(path));
}
