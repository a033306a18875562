import { lstat, mkdir, readlink, realpath, rmdir, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMountPoint, loadSyscalls, mountFlags, type RunTool } from "../../../connections/host/index.ts";
import { ifThere } from "../../../ground/base/index.ts";
import type { PodEvent } from "../../../ground/model/index.ts";
import { type MountWork, unmountAllAt } from "./unmount.ts";

export interface BlockMapping {
  /** `…/volumeDevices/<volume>/dev`: holds one bound device file per pod. */
  readonly mapDirectory: string;
  readonly uid: string;
  /** `pods/<uid>/volumeDevices/<plugin>/<volume>`: what the container gets. */
  readonly link: string;
}

/**
 * Gives a pod a block device under names of its own. The bound file is held open by a loop device, so that the kernel
 * can't hand the device's number to another one while the pod uses it.
 */
export async function mapBlockDevice(
  device: string,
  { mapDirectory, uid, link }: BlockMapping,
  run: RunTool,
  signal: AbortSignal,
): Promise<void> {
  if (device === "") throw new Error("device path of the volume is empty");
  const real = await realpath(device);
  const file = join(mapDirectory, uid);
  await mkdir(mapDirectory, { recursive: true, mode: 0o750 });
  if (!(await isMountPoint(file))) {
    await writeFile(file, "", { mode: 0o750 });
    (await loadSyscalls()).mount(real, file, "", mountFlags.bind);
  }
  await mkdir(dirname(link), { recursive: true, mode: 0o750 });
  const present = await ifThere(readlink(link));
  if (present !== file) {
    if (present !== undefined) await unlink(link);
    await symlink(file, link);
  }
  if ((await loopsOf(file, run, signal)).length === 0 && (await stat(file)).isBlockDevice()) {
    await run("losetup", ["-f", file], signal);
  }
}

/** What users are told when a device has been mapped. */
export function mappingEvents(volume: string, { mapDirectory, link }: BlockMapping): readonly PodEvent[] {
  const said = `MapVolume.MapPodDevice succeeded for volume "${volume}"`;
  const event = (message: string): PodEvent => ({ type: "Normal", reason: "SuccessfulMountVolume", message });
  return [event(`${said} globalMapPath "${mapDirectory}"`), event(`${said} volumeMapPath "${dirname(link)}"`)];
}

/** Takes the names away again; the device itself is left to whoever provided it. */
export async function unmapBlockDevice(
  { mapDirectory, uid, link }: BlockMapping,
  { run, work }: { readonly run: RunTool; readonly work: MountWork },
  signal: AbortSignal,
): Promise<void> {
  const file = join(mapDirectory, uid);
  for (const loop of await loopsOf(file, run, signal)) await run("losetup", ["-d", loop], signal);
  await ifThere(unlink(link));
  await unmountAllAt(file, work);
  const left = await lstat(file).catch(() => undefined);
  if (left !== undefined) {
    if (!left.isFile() || left.size > 0)
      throw new Error(`${file} is not what was made for the pod; it was not removed`);
    await unlink(file);
  }
  await rmdir(mapDirectory).catch(() => {});
}

/** Loop devices whose backing file is this one. */
async function loopsOf(file: string, run: RunTool, signal: AbortSignal): Promise<readonly string[]> {
  if ((await ifThere(lstat(file))) === undefined) return [];
  const output = await run("losetup", ["-j", file, "-n", "-O", "NAME"], signal);
  return output
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("/dev/loop"));
}
