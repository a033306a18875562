import { mkdir, readdir, readlink, rmdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { isMountPoint, type Mount, type RunTool, readMounts } from "../../../connections/host/index.ts";
import { type Clock, explain, ifThere, SerialByKey, unlessAborted } from "../../../ground/base/index.ts";
import { cleanEach } from "../attaching/clean-each.ts";
import { DeviceUsers } from "../attaching/device-users.ts";
import type { VolumesInUse } from "../attaching/volumes-in-use.ts";
import { giveToPodGroup, type OwnershipPorts } from "../kinds/fs-group.ts";
import {
  pluginDirectory,
  type SetUpContext,
  type SetUpResult,
  StepError,
  type VolumeKind,
  type VolumePlace,
  type VolumeSource,
  type WantedVolume,
} from "../kinds/kind.ts";
import { mountOptionsOf } from "../kinds/mount-options.ts";
import { contextOption, type MountLabels, mountedLabel, otherLabelError } from "../kinds/selinux.ts";
import { mapBlockDevice, mappingEvents, unmapBlockDevice } from "../mounting/block-map.ts";
import { formatAndMount } from "../mounting/disk.ts";
import { realPathOf, unmountAllAt, unmountPatiently } from "../mounting/unmount.ts";
import { usageOfDevice, type VolumeUsage } from "../stats/disk-usage.ts";
import { DiskPlaces } from "./disk-places.ts";
import type { DiskProtocol, RemoteDisk } from "./protocol.ts";

export interface DiskPorts extends OwnershipPorts {
  readonly clock: Clock;
  readonly run: RunTool;
  /** For what talks to storage somewhere else, on behalf of a pod. */
  readonly tools: (owner: string) => RunTool;
  /** Undefined where nobody but the agent attaches volumes to this node. */
  readonly inUse: VolumesInUse | undefined;
  /** `<root>/pods` and `<root>/plugins`. */
  readonly podsDir: string;
  readonly pluginsDir: string;
  /** Undefined where SELinux is off. */
  readonly labels?: MountLabels | undefined;
}

/**
 * Volumes that are disks somewhere else: attached and mounted once for all pods of the node, and shown to each. Which
 * disks are here is told by the directories of their places; who uses one, by the mount table and the links of pods.
 */
export class DiskVolumes<Disk extends RemoteDisk> implements VolumeKind {
  readonly plugin: string;
  readonly takesMountOptions = true;
  readonly #protocol: DiskProtocol<Disk>;
  readonly #ports: DiskPorts;
  readonly #places: DiskPlaces;
  /** A disk has one hand on it at a time, whichever pods it is for. */
  readonly #turns = new SerialByKey<string>();
  /** Who uses a disk, by its place. */
  readonly #users = new DeviceUsers();
  /** Under which names the cluster has heard of the disk in a place. */
  readonly #names = new Map<string, Set<string>>();

  constructor(protocol: DiskProtocol<Disk>, ports: DiskPorts) {
    this.plugin = protocol.plugin;
    this.#protocol = protocol;
    this.#ports = ports;
    this.#places = new DiskPlaces(protocol, ports.pluginsDir);
  }

  matches(source: VolumeSource): boolean {
    return this.#protocol.matches(source);
  }

  async setUp(wanted: WantedVolume, context: SetUpContext, signal: AbortSignal): Promise<SetUpResult> {
    const disk = this.#diskOf(wanted);
    const { readOnly } = disk;
    const label = wanted.form === "filesystem" ? this.#ports.labels?.of(wanted) : undefined;
    const relabel = !readOnly && label === undefined;
    if (!context.isFirst) return resultOf(wanted, readOnly, relabel);
    const place = this.#places.of(disk.directory, wanted.form);
    if (wanted.form === "block") {
      await this.#inTurn(place, signal, () => this.#map(wanted, disk, place, context, signal));
      return resultOf(wanted, readOnly, relabel);
    }
    const wasMounted = await isMountPoint(wanted.directory);
    await this.#inTurn(place, signal, () => this.#mount(wanted, { ...disk, label }, place, context, signal));
    if (!readOnly) {
      const policy = wasMounted ? "OnRootMismatch" : undefined;
      await giveToPodGroup({ wanted, path: wanted.directory, readOnly, policy }, context, this.#ports, signal);
    }
    return resultOf(wanted, readOnly, relabel);
  }

  #diskOf(wanted: WantedVolume): Disk {
    try {
      return this.#protocol.diskOf(wanted);
    } catch (error) {
      throw new StepError("NewMounter initialization", explain(error), error);
    }
  }

  async #mount(
    wanted: WantedVolume,
    disk: Disk & { readonly label: string | undefined },
    place: string,
    context: SetUpContext,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#want(wanted, disk, place, signal);
    const given = wanted.source.type === "claim" ? mountOptionsOf(wanted.source.persistent) : [];
    const options = [...given, ...(disk.readOnly ? ["ro"] : [])];
    if (await isMountPoint(place)) await this.#checkLabel(wanted, disk.label, place);
    else {
      const device = await this.#attach(wanted, disk, place, context, signal);
      context.progress("mounting the disk");
      const labelled = disk.label === undefined ? options : [...options, contextOption(disk.label)];
      const mount = { device, target: place, fsType: disk.fsType || "ext4", options: labelled };
      await formatAndMount(mount, this.#ports.run, signal).catch(failedIn("MountDevice"));
    }
    if (await isMountPoint(wanted.directory)) return;
    await mkdir(wanted.directory, { recursive: true, mode: 0o750 });
    const input = { source: place, target: wanted.directory, options };
    await this.#ports.files.run("bindMount", input, { path: place, owner: wanted.uid }, signal);
  }

  /** A file system has one label for all that see it. */
  async #checkLabel({ specName }: WantedVolume, label: string | undefined, place: string): Promise<void> {
    if (this.#ports.labels === undefined) return;
    const real = await realPathOf(place);
    const mount = (await readMounts()).findLast(({ mountPoint }) => mountPoint === real);
    if (mountedLabel(mount?.superOptions ?? []) !== label) throw otherLabelError(specName);
  }

  async #map(
    wanted: WantedVolume,
    disk: Disk,
    place: string,
    context: SetUpContext,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#want(wanted, disk, place, signal);
    const device = await this.#attach(wanted, disk, place, context, signal);
    const mapping = { mapDirectory: place, uid: wanted.uid, link: wanted.directory };
    await mapBlockDevice(device, mapping, this.#ports.run, signal).catch(failedIn("MapPodDevice"));
    for (const event of mappingEvents(wanted.specName, mapping)) this.#ports.recordEvent(wanted.pod, event);
  }

  async #want(wanted: WantedVolume, { uniqueName }: Disk, place: string, signal: AbortSignal): Promise<void> {
    this.#users.add(place, userOf(wanted));
    this.#names.set(place, (this.#names.get(place) ?? new Set()).add(uniqueName));
    await this.#ports.inUse?.want(uniqueName, signal);
  }

  async #attach(
    { uid }: WantedVolume,
    disk: Disk,
    place: string,
    { progress }: SetUpContext,
    signal: AbortSignal,
  ): Promise<string> {
    const attaching = { place, others: () => this.#othersThan(place), progress, run: this.#ports.tools(uid) };
    return await this.#protocol.attach(disk, attaching, signal).catch(failedIn("WaitForAttach"));
  }

  async tearDown(wanted: VolumePlace, signal: AbortSignal, progress?: (text: string) => void): Promise<void> {
    const places = await this.#placesOf(wanted);
    if (wanted.form === "block") await this.#unmap(wanted, places[0], signal);
    else {
      await unmountAllAt(wanted.directory, this.#ports.files.mountWork(wanted.uid, signal));
      await ifThere(rmdir(wanted.directory));
    }
    for (const place of places) {
      await this.#inTurn(place, signal, async () => {
        if (!this.#users.remove(place, userOf(wanted))) return;
        progress?.("its disk is taken from the node");
        await this.#letGo(place, wanted.uid, signal);
      });
    }
  }

  async #unmap(wanted: VolumePlace, place: string | undefined, signal: AbortSignal): Promise<void> {
    const { run, files } = this.#ports;
    // A link that leads to no place of ours has nothing behind it.
    const mapDirectory = place ?? join(dirname(wanted.directory), "none");
    const mapping = { mapDirectory, uid: wanted.uid, link: wanted.directory };
    await unmapBlockDevice(mapping, { run, work: files.mountWork(wanted.uid, signal) }, signal);
  }

  /** Where the disk of a pod's volume is mounted; by what the pod has of it and, failing that, by what it asked for. */
  async #placesOf(wanted: VolumePlace): Promise<readonly string[]> {
    const found = await this.#usedPlace(wanted);
    if (found !== undefined) return [found];
    const user = userOf(wanted);
    return this.#users
      .usedBy(user)
      .filter((use) => use.user === user)
      .map(({ device }) => device);
  }

  async #usedPlace({ form, directory }: VolumePlace): Promise<string | undefined> {
    if (form === "block") {
      const target = await ifThere(readlink(directory).catch(() => undefined));
      return target === undefined || !this.#places.isOne(dirname(target)) ? undefined : dirname(target);
    }
    const mounts = await readMounts();
    const device = deviceAt(await realPathOf(directory), mounts);
    if (device === undefined) return undefined;
    for (const place of await this.#places.all()) {
      if (deviceAt(await realPathOf(place), mounts) === device) return place;
    }
    return undefined;
  }

  /** Nobody uses the disk any more: it is unmounted, and taken from the node. */
  async #letGo(place: string, owner: string, signal: AbortSignal): Promise<void> {
    const mounts = await readMounts();
    const real = await realPathOf(place);
    const device = deviceAt(real, mounts);
    if (device !== undefined) {
      const elsewhere = mounts.filter((one) => one.device === device && one.mountPoint !== real);
      if (elsewhere.length > 0) {
        const list = elsewhere.slice(0, 10).map(({ mountPoint }) => mountPoint);
        throw new Error(`the device mount path "${place}" is still mounted by other references [${list.join(" ")}]`);
      }
      await unmountPatiently(place, this.#ports, signal);
      // What is in the place is a pod's as long as anything is mounted there.
      if (await isMountPoint(place)) throw new Error(`${place} is still mounted`);
    }
    const detaching = { place, others: () => this.#othersThan(place), run: this.#ports.tools(owner) };
    await this.#protocol.detach(detaching, signal);
    this.#forget(place);
  }

  async #othersThan(place: string): Promise<readonly string[]> {
    return (await this.#places.all()).filter((other) => other !== place);
  }

  #forget(place: string): void {
    const names = [...(this.#names.get(place) ?? []), ...this.#protocol.uniqueNamesOf(place)];
    for (const name of names) this.#ports.inUse?.unstaged(name);
    this.#names.delete(place);
  }

  /** A volume that the pod never got: its place goes with the next clean-up, if there is one. */
  async released(uid: string): Promise<void> {
    for (const { device, user } of this.#users.usedBy(`${uid}/`)) {
      if (this.#users.remove(device, user) && !(await this.#places.all()).includes(device)) this.#forget(device);
    }
  }

  async restore(found: readonly VolumePlace[]): Promise<void> {
    for (const wanted of found) {
      const place = await this.#usedPlace(wanted);
      if (place === undefined) continue;
      this.#users.add(place, userOf(wanted));
      for (const name of this.#protocol.uniqueNamesOf(place)) this.#ports.inUse?.restore(name);
    }
  }

  /** Disks that are here although no pod uses them: the agent ended between the steps of getting one or letting it go. */
  async cleanUp(signal: AbortSignal): Promise<void> {
    const unused = (await this.#places.all()).filter((place) => !this.#users.has(place));
    const clean = (place: string): Promise<void> => this.#inTurn(place, signal, () => this.#cleanUp(place, signal));
    await cleanEach(unused, "disks that no pod uses are still here", clean, signal);
  }

  async #cleanUp(place: string, signal: AbortSignal): Promise<void> {
    if (this.#users.has(place)) return;
    await this.#unmapLeftovers(place, signal);
    await this.#letGo(place, place, signal);
  }

  /** Devices of pods whose link to them is gone. */
  async #unmapLeftovers(place: string, signal: AbortSignal): Promise<void> {
    if (!this.#places.isForBlock(place)) return;
    for (const uid of await ifThere(readdir(place), [])) {
      if (this.#protocol.isRecord(uid)) continue;
      const link = join(this.#ports.podsDir, uid, "volumeDevices", pluginDirectory(this.plugin), basename(place));
      const { run, files } = this.#ports;
      await unmapBlockDevice({ mapDirectory: place, uid, link }, { run, work: files.mountWork(uid, signal) }, signal);
    }
  }

  async measure({ form, directory, uid }: VolumePlace, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    if (form === "block") return await usageOfDevice(directory);
    return this.#protocol.isMeasured ? await this.#ports.files.usage(directory, uid, signal) : undefined;
  }

  /** Who waits for others can be told to stop. */
  async #inTurn<Result>(place: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turns.run(place, () => {
      signal.throwIfAborted();
      return work();
    });
    return await unlessAborted(turn, signal);
  }
}

function resultOf({ form, directory }: WantedVolume, readOnly: boolean, relabel: boolean): SetUpResult {
  if (form === "block") return { volume: { type: "block", devicePath: directory, readOnly } };
  return { volume: { type: "filesystem", hostPath: directory, readOnly, relabel } };
}

function failedIn(step: "WaitForAttach" | "MountDevice" | "MapPodDevice"): (error: unknown) => never {
  return (error) => {
    throw new StepError(step, explain(error), error);
  };
}

/** The device of what is mounted exactly there; of several the last covers the others. */
function deviceAt(path: string | undefined, mounts: readonly Mount[]): string | undefined {
  return mounts.findLast(({ mountPoint }) => mountPoint === path)?.device;
}

function userOf({ uid, specName }: VolumePlace): string {
  return `${uid}/${specName}`;
}
