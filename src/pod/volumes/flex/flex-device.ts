import { mkdir, readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { isMountPoint, type RunTool } from "../../../connections/host/index.ts";
import { type Clock, explain, ifThere } from "../../../ground/base/index.ts";
import type { VolumesInUse } from "../attaching/volumes-in-use.ts";
import { StepError } from "../kinds/kind.ts";
import { formatAndMount } from "../mounting/disk.ts";
import { unmountPatiently } from "../mounting/unmount.ts";
import type { AskDriver } from "./ask-driver.ts";
import { deviceMountsOf, type FlexVolume, flexUniqueName, optionsFor } from "./flex-volume.ts";

export interface FlexDevicePorts {
  readonly clock: Clock;
  readonly run: RunTool;
  readonly nodeName: string;
  readonly pluginsDir: string;
  /** Undefined where nobody but the agent attaches volumes to this node. */
  readonly inUse: VolumesInUse | undefined;
}

/** A volume that is attached, and mounted once for all pods of the node. */
export interface FlexDevice {
  /** May be empty: the driver does without. */
  readonly devicePath: string;
  readonly mountPath: string;
}

/** Has the driver of a volume that is to be attached do its part before any pod does. */
export async function mountDevice(
  volume: FlexVolume,
  ask: AskDriver,
  ports: FlexDevicePorts,
  signal: AbortSignal,
): Promise<FlexDevice> {
  const { inUse, nodeName } = ports;
  const options = optionsFor(volume);
  const mountPath = join(deviceMountsOf(ports.pluginsDir, volume.driver), volume.specName);
  // Its answer is the volume's name in all of the cluster, which nobody uses; but it may refuse.
  await ask("getvolumename", [options], signal).catch(
    failedIn("WaitForAttach", "GetVolumeName failed from getDeviceMountPath: "),
  );
  const attachedAt =
    inUse === undefined
      ? ((await ask("attach", [options, nodeName], signal).catch(failedIn("WaitForAttach")))?.device ?? "")
      : (await inUse.want(flexUniqueName(volume), signal)).devicePath;
  const waited = await ask("waitforattach", [attachedAt, options], signal).catch(failedIn("WaitForAttach"));
  const devicePath = waited === undefined ? attachedAt : waited.device;
  await mountOnce({ devicePath, mountPath }, volume, ask, ports, signal).catch(failedIn("MountDevice"));
  return { devicePath, mountPath };
}

async function mountOnce(
  { devicePath, mountPath }: FlexDevice,
  volume: FlexVolume,
  ask: AskDriver,
  { run }: FlexDevicePorts,
  signal: AbortSignal,
): Promise<void> {
  if (await isMountPoint(mountPath)) return;
  await mkdir(mountPath, { recursive: true, mode: 0o750 });
  const mounted = await ask("mountdevice", [mountPath, devicePath, optionsFor(volume)], signal);
  if (mounted !== undefined || devicePath === "") return;
  const options = [volume.readOnly ? "ro" : "rw"];
  await formatAndMount(
    { device: devicePath, target: mountPath, fsType: volume.fsType || "ext4", options },
    run,
    signal,
  );
}

/** Nobody uses the volume any more: it is unmounted, and given back where we have attached it ourselves. */
export async function unmountDevice(
  { driver, specName }: Pick<FlexVolume, "driver" | "specName">,
  ask: AskDriver,
  ports: FlexDevicePorts,
  signal: AbortSignal,
): Promise<void> {
  const mountPath = join(deviceMountsOf(ports.pluginsDir, driver), specName);
  if (await isMountPoint(mountPath)) {
    const unmounted = await ask("unmountdevice", [mountPath], signal);
    if (unmounted === undefined) await unmountPatiently(mountPath, ports, signal);
    if (await isMountPoint(mountPath)) {
      throw new Error(`${mountPath} is still mounted although driver ${driver} was asked to unmount it`);
    }
  }
  if (ports.inUse === undefined) await ask("detach", [specName, ports.nodeName], signal);
  await ifThere(rmdir(mountPath));
}

/** Volumes of a driver that are, or were about to be, mounted for all pods. */
export async function devicesOnDisk(pluginsDir: string, driver: string): Promise<readonly string[]> {
  return await ifThere(readdir(deviceMountsOf(pluginsDir, driver)), []);
}

function failedIn(step: "WaitForAttach" | "MountDevice", before = ""): (error: unknown) => never {
  return (error) => {
    if (error instanceof StepError) throw error;
    throw new StepError(step, `${before}${explain(error)}`, error);
  };
}
