import { mkdir, readdir, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isMountPoint } from "../../../connections/host/index.ts";
import {
  type CsiCapabilities,
  type CsiClient,
  NodeStageVolumeRequest,
  PluginError,
} from "../../../connections/plugins/index.ts";
import { explain, ifThere } from "../../../ground/base/index.ts";
import { type SetUpContext, StepError } from "../kinds/kind.ts";
import { blockPaths, type CsiVolume, csiPlugin, stagingPaths, volDataFile } from "./csi-volume.ts";
import type { CsiPorts } from "./ports.ts";
import { capabilityOf, secretsOf } from "./requests.ts";
import { labelField, readRecord, removeRecord, writeRecord } from "./vol-data.ts";

export interface StageRequest {
  readonly volume: CsiVolume;
  readonly specName: string;
  readonly form: "filesystem" | "block";
  readonly client: CsiClient;
  readonly capabilities: CsiCapabilities;
  readonly publishContext: Readonly<Record<string, string>>;
  readonly group: number | undefined;
  /** Nothing was staged before, by whatever run of the agent. */
  readonly isNew: boolean;
}

/** Makes a volume known to the node, once for all its pods; the path is empty when the driver does without. */
export async function stage(
  request: StageRequest,
  context: Pick<SetUpContext, "progress">,
  ports: CsiPorts,
  signal: AbortSignal,
): Promise<string> {
  const { volume, specName, form, client, capabilities, publishContext, group } = request;
  const { target, record } = placesOf(volume, specName, form, ports.pluginsDir);
  try {
    // One that is staged already is not asked whether it is a directory: it may not answer.
    if (!(await isMountPoint(target))) await mkdir(target, { recursive: true, mode: 0o750 });
    if (!capabilities.stage) return "";
    const secrets = await secretsOf(volume.stageSecret, ports, signal);
    if (form === "filesystem") {
      await writeRecord(record, { driverName: volume.driver, volumeHandle: volume.handle, ...labelField(volume) });
    }
    context.progress(`driver ${volume.driver} stages the volume`);
    await client.stage(
      NodeStageVolumeRequest.fromPartial({
        volumeId: volume.handle,
        publishContext,
        stagingTargetPath: target,
        volumeCapability: capabilityOf(volume, form, capabilities, group),
        secrets,
        volumeContext: { ...volume.attributes },
      }),
      signal,
    );
    return target;
  } catch (error) {
    signal.throwIfAborted();
    // After a clear refusal nothing is staged; in doubt the record stays, so that unstaging is asked for.
    if (request.isNew && error instanceof PluginError && !error.isUncertain)
      await removeStaging(target, record).catch(() => {});
    throw new StepError(form === "block" ? "SetUpDevice" : "MountDevice", explain(error), error);
  }
}

/** Has the driver let go of a volume that no pod of the node uses any more. */
export async function unstage(
  {
    volume,
    specName,
    form,
  }: Pick<StageRequest, "specName" | "form"> & { volume: Pick<CsiVolume, "driver" | "handle"> },
  ports: CsiPorts,
  signal: AbortSignal,
): Promise<void> {
  const { target, record } = placesOf(volume, specName, form, ports.pluginsDir);
  if ((await readRecord(record)) !== "missing") {
    const client = ports.drivers.client(volume.driver);
    if ((await client.capabilities(signal)).stage) await client.unstage(volume.handle, target, signal);
  }
  await removeStaging(target, record);
  if (form === "block") await rmdir(dirname(dirname(record))).catch(() => {});
}

function placesOf(
  volume: Pick<CsiVolume, "driver" | "handle">,
  specName: string,
  form: "filesystem" | "block",
  pluginsDir: string,
): { readonly target: string; readonly record: string } {
  if (form === "filesystem") return stagingPaths(pluginsDir, volume);
  const { staging, record } = blockPaths(pluginsDir, specName, "");
  return { target: staging, record };
}

/** Content is never touched: a directory that is still mounted, or not empty, stays with its record. */
async function removeStaging(target: string, record: string): Promise<void> {
  if (await isMountPoint(target)) {
    throw new Error(`${target} is still mounted although its driver was asked to unstage it; it was not removed`);
  }
  await ifThere(rmdir(target));
  await removeRecord(record);
  await ifThere(rmdir(dirname(record)));
}

/** Volumes that are staged according to the records on disk. */
export async function stagedOnDisk(
  pluginsDir: string,
): Promise<readonly { driver: string; handle: string; specName: string; form: "filesystem" | "block" }[]> {
  const staged: { driver: string; handle: string; specName: string; form: "filesystem" | "block" }[] = [];
  const root = join(pluginsDir, csiPlugin);
  for (const driver of await ifThere(readdir(root), [])) {
    if (driver === "volumeDevices") continue;
    for (const digest of await ifThere(readdir(join(root, driver)), [])) {
      const record = await readRecord(join(root, driver, digest, volDataFile));
      if (typeof record === "object") staged.push({ ...record, specName: "", form: "filesystem" });
    }
  }
  for (const specName of await ifThere(readdir(join(root, "volumeDevices")), [])) {
    if (specName === "staging" || specName === "publish") continue;
    const record = await readRecord(blockPaths(pluginsDir, specName, "").record);
    if (typeof record === "object") staged.push({ ...record, specName, form: "block" });
  }
  return staged;
}

/** Removes staging places that nothing was staged in before a crash; those in use by drivers without staging stay. */
export async function removeEmptyStaging(pluginsDir: string, inUse: ReadonlySet<string>): Promise<void> {
  const root = join(pluginsDir, csiPlugin);
  for (const driver of await ifThere(readdir(root), [])) {
    if (driver === "volumeDevices") continue;
    for (const digest of await ifThere(readdir(join(root, driver)), [])) {
      const directory = join(root, driver, digest);
      if (inUse.has(directory) || typeof (await readRecord(join(directory, volDataFile))) === "object") continue;
      await removeStaging(join(directory, "globalmount"), join(directory, volDataFile));
    }
  }
}
