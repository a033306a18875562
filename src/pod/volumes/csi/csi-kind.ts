import { rmdir } from "node:fs/promises";
import { isMountPoint } from "../../../connections/host/index.ts";
import { VolumeUsage_Unit } from "../../../connections/plugins/index.ts";
import { SerialByKey } from "../../../ground/base/index.ts";
import type { CSIDriver, PodUid } from "../../../ground/model/index.ts";
import { cleanEach } from "../attaching/clean-each.ts";
import { DeviceUsers } from "../attaching/device-users.ts";
import { wantedGrowth } from "../attaching/growth.ts";
import { VolumesInUse } from "../attaching/volumes-in-use.ts";
import type { SetUpContext, SetUpResult, VolumeKind, VolumePlace, WantedVolume } from "../kinds/kind.ts";
import { otherLabelError, takesLabels } from "../kinds/selinux.ts";
import { mapBlockDevice, mappingEvents, unmapBlockDevice } from "../mounting/block-map.ts";
import type { VolumeUsage } from "../stats/disk-usage.ts";
import {
  blockPaths,
  type CsiVolume,
  csiPlugin,
  csiVolumeOf,
  isCsi,
  labelledVolume,
  publishPaths,
  stagingPaths,
  uniqueName,
  volumeNamed,
} from "./csi-volume.ts";
import { expandVolume } from "./expansion.ts";
import type { CsiPorts } from "./ports.ts";
import { publish, removePlace, removeTarget } from "./publishing.ts";
import { removeEmptyStaging, stage, stagedOnDisk, unstage } from "./staging.ts";
import { readRecord } from "./vol-data.ts";
import { waitForAttach } from "./wait-for-attach.ts";

/** Volumes of storage drivers. What the driver was asked for is on disk before it is asked, so nothing gets lost. */
export class CsiVolumes implements VolumeKind {
  readonly plugin = csiPlugin;
  readonly takesMountOptions = true;
  readonly #ports: CsiPorts;
  /** A volume has one hand on it at a time, whichever pods it is for. */
  readonly #turns = new SerialByKey<string>();
  readonly #users = new DeviceUsers();
  /** Where this run of the agent has had a volume staged. */
  readonly #staged = new Map<string, string>();
  /** What an earlier run of the agent has left: by name of the volume, and by pod. */
  readonly #restored = new Set<string>();
  /** Pods whose volumes are published again and again. */
  readonly #renewed = new Set<string>();
  /** SELinux labels that volumes are staged with. */
  readonly #labels = new Map<string, string>();
  /** Pods whose volumes the runtime need not label. */
  readonly #labelledByMount = new Set<string>();
  readonly #inUse: VolumesInUse;

  constructor(ports: CsiPorts) {
    this.#ports = ports;
    const { onInUse, cluster } = ports;
    this.#inUse = new VolumesInUse({ onInUse, attachedAt: (name, signal) => cluster.attachedAt(name, signal) });
  }

  matches(source: WantedVolume["source"]): boolean {
    return isCsi(source);
  }

  /** For the node's status: what is attached, or has to be. */
  volumesInUse(): readonly string[] {
    return this.#inUse.list();
  }

  setUp(wanted: WantedVolume, context: SetUpContext, signal: AbortSignal): Promise<SetUpResult> {
    const volume = csiVolumeOf(wanted);
    const key = volume.lifecycle === "Ephemeral" ? volume.handle : uniqueName(volume);
    return this.#turns.run(key, () => this.#setUp(wanted, volume, context, signal));
  }

  async #setUp(
    wanted: WantedVolume,
    plain: CsiVolume,
    context: SetUpContext,
    signal: AbortSignal,
  ): Promise<SetUpResult> {
    const { cluster, drivers } = this.#ports;
    const name = uniqueName(plain);
    const isRenewed = this.#renewed.has(userOf(wanted));
    if (!context.isFirst && !isRenewed && wantedGrowth(wanted) === undefined) {
      return this.#result(wanted, plain, context);
    }
    const driver = await cluster.csiDriver(plain.driver, signal);
    const volume = this.#labelled(wanted, plain, driver);
    if (volume.lifecycle === "Persistent") {
      this.#users.add(name, userOf(wanted));
      if (driver?.spec.attachRequired !== false) await this.#inUse.want(name, signal);
    }
    const mustPublish = context.isFirst || driver?.spec.requiresRepublish === true;
    const client = drivers.client(volume.driver);
    const capabilities = await client.capabilities(signal);
    const publishContext = await waitForAttach(volume, driver, this.#ports, signal);
    let stagingPath = "";
    if (volume.lifecycle === "Persistent") {
      const { specName, form } = wanted;
      const group = wanted.pod.spec.securityContext?.fsGroup;
      const isNew = !this.#restored.has(name);
      const request = { volume, specName, form, client, capabilities, publishContext, group, isNew };
      stagingPath = this.#staged.get(name) ?? (await stage(request, context, this.#ports, signal));
      this.#staged.set(name, stagingPath);
    }
    const isNew = context.isFirst && !this.#restored.has(userOf(wanted));
    const request = { wanted, volume, driver, client, capabilities, publishContext, stagingPath, isNew };
    if (driver?.spec.requiresRepublish === true) this.#renewed.add(userOf(wanted));
    const target = mustPublish ? await publish(request, context, this.#ports, signal) : this.#targetOf(wanted);
    if (wanted.form === "block" && context.isFirst) await this.#map(wanted, target, signal);
    const isInUse = !context.isFirst;
    await this.#lookForLabels(wanted, volume, target);
    await expandVolume(
      { wanted, volume, client, capabilities, path: target, stagingPath, isInUse },
      this.#ports,
      signal,
    );
    return this.#result(wanted, volume, context);
  }

  /** With the SELinux label that it is mounted with, where its driver can do that. */
  #labelled(wanted: WantedVolume, volume: CsiVolume, driver: CSIDriver | undefined): CsiVolume {
    const { labels } = this.#ports;
    if (labels === undefined || wanted.form === "block" || volume.lifecycle === "Ephemeral") return volume;
    const label = driver?.spec.seLinuxMount === true ? labels.of(wanted) : undefined;
    const name = uniqueName(volume);
    const isStaged = this.#staged.has(name) || this.#restored.has(name);
    // A file system has one label for all that see it.
    if (isStaged && this.#labels.get(name) !== label) throw otherLabelError(wanted.specName);
    if (label !== undefined) this.#labels.set(name, label);
    return labelledVolume(volume, label);
  }

  /** Files that have their label by the mount, or can't have any, need none from the runtime. */
  async #lookForLabels(wanted: WantedVolume, { label }: CsiVolume, target: string): Promise<void> {
    if (this.#ports.labels === undefined || wanted.form === "block") return;
    const needsNone = label !== undefined || !(await takesLabels(target));
    if (needsNone) this.#labelledByMount.add(userOf(wanted));
    else this.#labelledByMount.delete(userOf(wanted));
  }

  /** Whoever has a claim may have it grow while the pod runs, which we see when we look again. */
  #result(wanted: WantedVolume, volume: CsiVolume, context: SetUpContext): SetUpResult {
    const { clock, random, syncFrequencyMs } = this.#ports;
    if (volume.lifecycle === "Persistent") context.againAt(clock.now() + syncFrequencyMs * (1 + random() / 2));
    const { readOnly } = volume;
    const target = this.#targetOf(wanted);
    if (wanted.form === "block") return { volume: { type: "block", devicePath: wanted.directory, readOnly } };
    const relabel = !readOnly && !this.#labelledByMount.has(userOf(wanted));
    return { volume: { type: "filesystem", hostPath: target, readOnly, relabel } };
  }

  async #map(wanted: WantedVolume, device: string, signal: AbortSignal): Promise<void> {
    const { mapDirectory } = blockPaths(this.#ports.pluginsDir, wanted.specName, wanted.uid);
    const mapping = { mapDirectory, uid: wanted.uid, link: wanted.directory };
    await mapBlockDevice(device, mapping, this.#ports.run, signal);
    for (const event of mappingEvents(wanted.specName, mapping)) this.#ports.recordEvent(wanted.pod, event);
  }

  #targetOf(place: VolumePlace): string {
    if (place.form === "filesystem") return publishPaths(place).target;
    return blockPaths(this.#ports.pluginsDir, place.specName, place.uid).target;
  }

  async tearDown(place: VolumePlace, signal: AbortSignal): Promise<void> {
    const recordPath = this.#recordOf(place);
    const record = await readRecord(recordPath);
    if (typeof record === "string") {
      const target = this.#targetOf(place);
      if (await isMountPoint(target)) {
        throw new Error(
          `${target} is mounted, but ${recordPath} is ${record}: its driver is not known and can't be asked to unmount it`,
        );
      }
      if (place.form === "block") await this.#unmap(place, signal);
      await removeTarget(target, recordPath);
      return;
    }
    const key = record.lifecycle === "Ephemeral" ? record.handle : uniqueName(record);
    await this.#turns.run(key, async () => {
      if (place.form === "block") await this.#unmap(place, signal);
      const target = this.#targetOf(place);
      await this.#ports.drivers.client(record.driver).unpublish(record.handle, target, signal);
      if (place.form === "block") await this.#removeBlockTarget(place, target);
      else await removeTarget(target, recordPath);
      this.#restored.delete(userOf(place));
      this.#renewed.delete(userOf(place));
      this.#labelledByMount.delete(userOf(place));
      if (record.lifecycle === "Persistent" && this.#users.remove(key, userOf(place))) {
        await this.#unstage({ ...record, specName: place.specName, form: place.form }, signal);
      }
    });
  }

  /** A volume that the pod never got has no record, but was counted as its own when it was first asked for. */
  async released(uid: PodUid): Promise<void> {
    for (const { device, user } of this.#users.usedBy(`${uid}/`)) {
      if (!this.#users.remove(device, user)) continue;
      const staged = await stagedOnDisk(this.#ports.pluginsDir);
      // What is staged goes with the next clean-up; what is not was at most waited for.
      if (!staged.some((volume) => uniqueName(volume) === device)) this.#inUse.unstaged(device);
    }
  }

  async #unmap(place: VolumePlace, signal: AbortSignal): Promise<void> {
    const { mapDirectory } = blockPaths(this.#ports.pluginsDir, place.specName, place.uid);
    const { run, files } = this.#ports;
    const mapping = { mapDirectory, uid: place.uid, link: place.directory };
    await unmapBlockDevice(mapping, { run, work: files.mountWork(place.uid, signal) }, signal);
  }

  /** The record of a block volume is shared by its pods and goes with the last. */
  async #removeBlockTarget(place: VolumePlace, target: string): Promise<void> {
    await removePlace(target);
    await rmdir(blockPaths(this.#ports.pluginsDir, place.specName, place.uid).publishDirectory).catch(() => {});
  }

  #recordOf(place: VolumePlace): string {
    if (place.form === "filesystem") return publishPaths(place).record;
    return blockPaths(this.#ports.pluginsDir, place.specName, place.uid).record;
  }

  /** Only the driver knows; some don't. */
  async measure(place: VolumePlace, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const record = await readRecord(this.#recordOf(place));
    if (typeof record === "string") return undefined;
    const client = this.#ports.drivers.client(record.driver);
    if (!(await client.capabilities(signal)).stats) return undefined;
    const stagingPath = this.#staged.get(uniqueName(record)) ?? "";
    const { usage } = await client.stats(record.handle, this.#targetOf(place), stagingPath, signal);
    const bytes = usage.find(({ unit }) => unit === VolumeUsage_Unit.BYTES);
    const inodes = usage.find(({ unit }) => unit === VolumeUsage_Unit.INODES);
    if (bytes === undefined && inodes === undefined) return undefined;
    return {
      capacityBytes: bytes?.total ?? 0n,
      availableBytes: bytes?.available ?? 0n,
      usedBytes: bytes?.used ?? 0n,
      inodes: inodes?.total ?? 0n,
      inodesFree: inodes?.available ?? 0n,
      inodesUsed: inodes?.used ?? 0n,
    };
  }

  async restore(places: readonly VolumePlace[]): Promise<void> {
    for (const place of places) {
      const record = await readRecord(this.#recordOf(place));
      if (typeof record === "string") continue;
      this.#restored.add(userOf(place));
      if (record.lifecycle !== "Persistent") continue;
      this.#users.add(uniqueName(record), userOf(place));
      this.#restored.add(uniqueName(record));
      if (record.label !== undefined) this.#labels.set(uniqueName(record), record.label);
      if (record.attachment !== "") this.#inUse.restore(uniqueName(record));
    }
  }

  /** Volumes that are staged although no pod uses them: the agent ended between the two steps of letting them go. */
  async cleanUp(signal: AbortSignal): Promise<void> {
    const found = await stagedOnDisk(this.#ports.pluginsDir);
    const unused = found.filter((staged) => !this.#users.has(uniqueName(staged)));
    const clean = (staged: (typeof found)[number]): Promise<void> =>
      this.#turns.run(uniqueName(staged), async () => {
        if (!this.#users.has(uniqueName(staged))) await this.#unstage(staged, signal);
      });
    await cleanEach(unused, "volumes that no pod uses are still staged", clean, signal);
    const inUse = this.#users
      .devices()
      .map((name) => stagingPaths(this.#ports.pluginsDir, volumeNamed(name)).directory);
    await removeEmptyStaging(this.#ports.pluginsDir, new Set(inUse));
  }

  async #unstage(
    { driver, handle, specName, form }: { driver: string; handle: string; specName: string; form: VolumePlace["form"] },
    signal: AbortSignal,
  ): Promise<void> {
    const key = uniqueName({ driver, handle });
    await unstage({ volume: { driver, handle }, specName, form }, this.#ports, signal);
    this.#staged.delete(key);
    this.#restored.delete(key);
    this.#labels.delete(key);
    this.#inUse.unstaged(key);
  }
}

function userOf({ uid, specName }: VolumePlace): string {
  return `${uid}/${specName}`;
}
