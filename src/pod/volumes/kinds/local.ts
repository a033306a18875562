import { mkdir, readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { isMountPoint, type RunTool } from "../../../connections/host/index.ts";
import { type Clock, ifThere, isMissing, type Logger, SerialByKey } from "../../../ground/base/index.ts";
import type { PersistentVolume, RecordPodEvent } from "../../../ground/model/index.ts";
import type { OutputOf } from "../file-processes/file-jobs.ts";
import type { VolumeFiles } from "../file-processes/volume-files.ts";
import { mapBlockDevice, mappingEvents, unmapBlockDevice } from "../mounting/block-map.ts";
import { formatAndMount } from "../mounting/disk.ts";
import { unmountAllAt, unmountPatiently } from "../mounting/unmount.ts";
import { usageOfDevice } from "../stats/disk-usage.ts";
import { giveToPodGroup } from "./fs-group.ts";
import {
  type SetUpContext,
  type SetUpResult,
  StepError,
  type VolumeKind,
  type VolumePlace,
  type WantedVolume,
} from "./kind.ts";
import { mountOptionsOf } from "./mount-options.ts";

export interface LocalPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordEvent: RecordPodEvent;
  readonly run: RunTool;
  readonly files: VolumeFiles;
  /** `<root>/pods` and `<root>/plugins`. */
  readonly podsDir: string;
  readonly pluginsDir: string;
}

const plugin = "kubernetes.io/local-volume";

/** A directory or disk of this node behind a persistent volume. */
export function localKind(ports: LocalPorts): VolumeKind {
  // Pods that share the volume come and go at the same time; its one mount has one hand on it.
  const turns = new SerialByKey<string>();
  const local = new LocalVolumes(ports);
  return {
    plugin,
    takesMountOptions: true,
    matches: (source) => source.type === "claim" && source.persistent.spec?.local !== undefined,
    setUp: (wanted, context, signal) => turns.run(wanted.specName, () => local.setUp(wanted, context, signal)),
    tearDown: (place, signal) => turns.run(place.specName, () => local.tearDown(place, signal)),
    measure: ({ directory, form, uid }, signal) =>
      form === "block" ? usageOfDevice(directory) : ports.files.usage(directory, uid, signal),
    cleanUp: (signal) => local.cleanUp((name, work) => turns.run(name, work), signal),
  };
}

class LocalVolumes {
  readonly #ports: LocalPorts;

  constructor(ports: LocalPorts) {
    this.#ports = ports;
  }

  async setUp(wanted: WantedVolume, context: SetUpContext, signal: AbortSignal): Promise<SetUpResult> {
    const { source, directory, form } = wanted;
    if (source.type !== "claim") throw new Error("a local volume is always behind a claim");
    const { persistent, readOnly } = source;
    if (form === "block") return this.#setUpBlock(wanted, persistent, readOnly, signal);
    const origin = await this.#origin(persistent, wanted, signal);
    const options = [...mountOptionsOf(persistent), ...(readOnly ? ["ro"] : [])];
    if (!(await isMountPoint(directory))) {
      await mkdir(directory, { recursive: true, mode: 0o750 });
      const input = { source: origin, target: directory, options };
      await this.#ports.files.run("bindMount", input, { path: origin, owner: wanted.uid }, signal);
      await this.#own(wanted, directory, readOnly, context, signal);
    }
    return { volume: { type: "filesystem", hostPath: directory, readOnly, relabel: !readOnly } };
  }

  /** Only the first pod may change the owner: the others find files that somebody is working with. */
  async #own(
    wanted: WantedVolume,
    path: string,
    readOnly: boolean,
    context: SetUpContext,
    signal: AbortSignal,
  ): Promise<void> {
    const gid = wanted.pod.spec.securityContext?.fsGroup;
    if (gid === undefined) return;
    if ((await this.#otherUsers(wanted)).length === 0) {
      await giveToPodGroup({ wanted, path, readOnly }, context, this.#ports, signal);
      return;
    }
    const found = await this.#lookAt(path, wanted.uid, signal);
    if (found.gid === gid) return;
    const message = `The requested fsGroup is ${gid}, but the volume ${wanted.specName} has GID ${found.gid}. The volume may not be shareable.`;
    this.#ports.recordEvent(wanted.pod, { type: "Warning", reason: "AlreadyMountedVolume", message });
  }

  async #setUpBlock(
    wanted: WantedVolume,
    persistent: PersistentVolume,
    readOnly: boolean,
    signal: AbortSignal,
  ): Promise<SetUpResult> {
    const { path = "" } = persistent.spec?.local ?? {};
    if (!(await this.#lookAt(path, wanted.uid, signal)).isBlockDevice)
      throw new StepError("MapPodDevice", `${path} is not a block device`);
    await mapBlockDevice(path, this.#mapping(wanted), this.#ports.run, signal);
    for (const event of mappingEvents(wanted.specName, this.#mapping(wanted))) {
      this.#ports.recordEvent(wanted.pod, event);
    }
    return { volume: { type: "block", devicePath: wanted.directory, readOnly } };
  }

  /** Where the content is: the directory itself, or the place where its disk is mounted. */
  async #origin(
    persistent: PersistentVolume,
    { specName: name, uid }: WantedVolume,
    signal: AbortSignal,
  ): Promise<string> {
    const { path = "", fsType } = persistent.spec?.local ?? {};
    const found = await this.#lookAt(path, uid, signal).catch((error: unknown) => {
      if (!isMissing(error)) throw error;
      throw new StepError("NewMounter initialization", `path "${path}" does not exist`, error);
    });
    if (found.isDirectory) return path;
    if (!found.isBlockDevice) {
      throw new StepError("MountDevice", "only directory and block device are supported");
    }
    const mounted = this.#diskPath(name);
    if (await isMountPoint(mounted)) return mounted;
    await mkdir(mounted, { recursive: true, mode: 0o750 });
    const options = mountOptionsOf(persistent);
    try {
      await formatAndMount(
        { device: path, target: mounted, fsType: fsType || "ext4", options },
        this.#ports.run,
        signal,
      );
    } catch (error) {
      await rmdir(mounted).catch(() => {});
      throw new StepError("MountDevice", error instanceof Error ? error.message : String(error), error);
    }
    return mounted;
  }

  async tearDown(place: VolumePlace, signal: AbortSignal): Promise<void> {
    if (place.form === "block") {
      const { run, files } = this.#ports;
      await unmapBlockDevice(this.#mapping(place), { run, work: files.mountWork(place.uid, signal) }, signal);
      await rmdir(join(this.#mapping(place).mapDirectory, "..")).catch(() => {});
      return;
    }
    await unmountAllAt(place.directory, this.#ports.files.mountWork(place.uid, signal));
    await ifThere(rmdir(place.directory));
    if ((await this.#otherUsers(place)).length === 0) await this.#unmountDisk(place.specName, signal);
  }

  /** Disks that are mounted although no pod uses them any more: the agent ended between the two steps. */
  async cleanUp(
    inTurn: (name: string, work: () => Promise<void>) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    for (const name of await ifThere(readdir(join(this.#ports.pluginsDir, plugin, "mounts")), [])) {
      await inTurn(name, async () => {
        const place = { uid: "", specName: name };
        if ((await this.#otherUsers(place)).length === 0) await this.#unmountDisk(name, signal);
      });
    }
  }

  /** By a program, which may wait in our place: what is not on the disk yet goes there first. */
  async #unmountDisk(name: string, signal: AbortSignal): Promise<void> {
    const mounted = this.#diskPath(name);
    if (await isMountPoint(mounted)) await unmountPatiently(mounted, this.#ports, signal);
    await unmountAllAt(mounted, this.#ports.files.mountWork(name, signal));
    await ifThere(rmdir(mounted));
  }

  #lookAt(path: string, owner: string, signal: AbortSignal): Promise<OutputOf<"lookAt">> {
    return this.#ports.files.run("lookAt", { path }, { path, owner }, signal);
  }

  #diskPath(name: string): string {
    return join(this.#ports.pluginsDir, plugin, "mounts", name);
  }

  #mapping({ specName, uid, directory }: VolumePlace): Parameters<typeof unmapBlockDevice>[0] {
    const mapDirectory = join(this.#ports.pluginsDir, plugin, "volumeDevices", specName);
    return { mapDirectory, uid, link: directory };
  }

  /** Other pods that have the volume, as the disk tells. */
  async #otherUsers({ uid, specName }: { uid: string; specName: string }): Promise<readonly string[]> {
    const users: string[] = [];
    for (const pod of await ifThere(readdir(this.#ports.podsDir), [])) {
      if (pod === uid) continue;
      // Only its name is looked for: what is mounted there may not answer.
      const names = await ifThere(readdir(join(this.#ports.podsDir, pod, "volumes", plugin.replaceAll("/", "~"))), []);
      if (names.includes(specName)) users.push(pod);
    }
    return users;
  }
}
