import { lstat, mkdir, rmdir, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { isMountPoint } from "../../../connections/host/index.ts";
import {
  type CsiCapabilities,
  type CsiClient,
  NodePublishVolumeRequest,
  PluginError,
} from "../../../connections/plugins/index.ts";
import { ifThere } from "../../../ground/base/index.ts";
import type { CSIDriver } from "../../../ground/model/index.ts";
import { giveToPodGroup } from "../kinds/fs-group.ts";
import type { SetUpContext, WantedVolume } from "../kinds/kind.ts";
import { attachmentName, blockPaths, type CsiVolume, publishPaths } from "./csi-volume.ts";
import type { CsiPorts } from "./ports.ts";
import { capabilityOf, changesGroup, checkVolumeLifecycle, secretsOf, volumeContextOf } from "./requests.ts";
import { labelField, removeRecord, writeRecord } from "./vol-data.ts";

export interface PublishRequest {
  readonly wanted: WantedVolume;
  readonly volume: CsiVolume;
  readonly driver: CSIDriver | undefined;
  readonly client: CsiClient;
  readonly capabilities: CsiCapabilities;
  readonly publishContext: Readonly<Record<string, string>>;
  readonly stagingPath: string;
  /** Nothing was published for this pod before, by whatever run of the agent. */
  readonly isNew: boolean;
}

/** Gives a pod its part of a volume: the path of it. Publishing again renews what the driver was told. */
export async function publish(
  request: PublishRequest,
  context: SetUpContext,
  ports: CsiPorts,
  signal: AbortSignal,
): Promise<string> {
  const { wanted, volume, driver, client, capabilities, publishContext, stagingPath } = request;
  checkVolumeLifecycle(volume, driver);
  const paths = pathsOf(wanted, ports.pluginsDir);
  const group = wanted.pod.spec.securityContext?.fsGroup;
  await mkdir(dirname(paths.target), { recursive: true, mode: 0o750 });
  await mkdir(dirname(paths.record), { recursive: true, mode: 0o750 });
  try {
    const secrets = await secretsOf(volume.publishSecret, ports, signal);
    const { context: volumeContext, refreshAt } = await volumeContextOf(wanted, volume, driver, ports, signal);
    await writeRecord(paths.record, recordOf(request, ports.nodeName));
    context.progress(`driver ${volume.driver} publishes the volume`);
    await client.publish(
      NodePublishVolumeRequest.fromPartial({
        volumeId: volume.handle,
        publishContext,
        stagingTargetPath: stagingPath,
        targetPath: paths.target,
        volumeCapability: capabilityOf(volume, wanted.form, capabilities, group),
        readonly: volume.readOnly,
        secrets,
        volumeContext,
      }),
      signal,
    );
    if (driver?.spec.requiresRepublish === true) {
      const nextSync = ports.clock.now() + ports.syncFrequencyMs * (1 + ports.random() / 2);
      context.againAt(Math.min(nextSync, refreshAt ?? nextSync));
    }
  } catch (error) {
    signal.throwIfAborted();
    // What is in use already is left alone; what was clearly refused leaves nothing behind.
    const isFinal = !(error instanceof PluginError) || !error.isUncertain;
    if (request.isNew && isFinal) await removeTarget(paths.target, paths.record).catch(() => {});
    throw error;
  }
  if (wanted.form === "filesystem" && changesGroup(volume, driver, capabilities)) {
    await giveToPodGroup({ wanted, path: paths.target, readOnly: volume.readOnly }, context, ports, signal);
  }
  return paths.target;
}

function pathsOf(wanted: WantedVolume, pluginsDir: string): { readonly target: string; readonly record: string } {
  return wanted.form === "block" ? blockPaths(pluginsDir, wanted.specName, wanted.uid) : publishPaths(wanted);
}

function recordOf({ wanted, volume, driver }: PublishRequest, nodeName: string): Record<string, string> {
  const isAttached = volume.lifecycle === "Persistent" && driver?.spec.attachRequired !== false;
  const fields = {
    specVolID: wanted.specName,
    volumeHandle: volume.handle,
    driverName: volume.driver,
    nodeName,
    attachmentID: isAttached ? attachmentName(volume, nodeName) : "",
  };
  return wanted.form === "block" ? fields : { ...fields, volumeLifecycleMode: volume.lifecycle, ...labelField(volume) };
}

/** Removes the place of a volume that its driver has let go of. What is still mounted, or holds files, stays. */
export async function removeTarget(target: string, record: string): Promise<void> {
  await removePlace(target);
  await removeRecord(record);
  await ifThere(rmdir(dirname(record)));
}

export async function removePlace(target: string): Promise<void> {
  if (await isMountPoint(target)) {
    throw new Error(`${target} is still mounted although its driver was asked to unpublish it; it was not removed`);
  }
  const found = await lstat(target).catch(() => undefined);
  if (found?.isDirectory()) await rmdir(target);
  else if (found !== undefined) await unlink(target);
}
