import type { RunTool, ScsiDisks } from "../../../connections/host/index.ts";

/**
 * Takes disks from the node: first what multipath has made of them, then what is not written yet, then the disks. A pod
 * may have named a disk that the node itself lives on: what is in use by anybody stays, and is in the answer.
 */
export async function dropDisks(
  disks: readonly string[],
  { scsi, run }: { readonly scsi: ScsiDisks; readonly run: RunTool },
  signal: AbortSignal,
): Promise<readonly string[]> {
  const left: string[] = [];
  const maps = new Set<string>();
  for (const disk of disks) {
    const map = await scsi.mapOf(disk);
    if (map !== undefined) maps.add(map);
  }
  const all = new Set(disks.filter((disk) => !maps.has(disk)));
  for (const map of maps) {
    for (const member of await scsi.membersOf(map)) all.add(member);
    // One that is still in use is not to be torn down.
    await run("multipath", ["-f", scsi.devicePath(map)], signal);
  }
  for (const disk of all) {
    if (await scsi.isInUse(disk, maps)) {
      left.push(disk);
      continue;
    }
    // Best effort: a path that is dead has nothing to say, and must go all the same.
    await run("blockdev", ["--flushbufs", scsi.devicePath(disk)], signal).catch(() => signal.throwIfAborted());
    await scsi.forget(disk, signal);
  }
  return left;
}
