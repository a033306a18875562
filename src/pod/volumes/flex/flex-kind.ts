import { mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { isMountPoint } from "../../../connections/host/index.ts";
import { explain, ifThere, SerialByKey, unlessAborted } from "../../../ground/base/index.ts";
import type { PodUid, Secret } from "../../../ground/model/index.ts";
import { cleanEach } from "../attaching/clean-each.ts";
import { DeviceUsers } from "../attaching/device-users.ts";
import { type Growth, type GrowthReports, growVolume, wantedGrowth } from "../attaching/growth.ts";
import { giveToPodGroup, type OwnershipPorts } from "../kinds/fs-group.ts";
import {
  type SetUpContext,
  type SetUpResult,
  StepError,
  type VolumeKind,
  type VolumePlace,
  type VolumeSource,
  type WantedVolume,
} from "../kinds/kind.ts";
import { growFileSystem } from "../mounting/grow-file-system.ts";
import { unmountPatiently } from "../mounting/unmount.ts";
import type { VolumeUsage } from "../stats/disk-usage.ts";
import { type AskDriver, askable } from "./ask-driver.ts";
import { DeviceDescriptions } from "./device-descriptions.ts";
import type { FlexDriver, FlexDrivers } from "./drivers.ts";
import type { FlexCalls } from "./flex-calls.ts";
import { devicesOnDisk, type FlexDevice, type FlexDevicePorts, mountDevice, unmountDevice } from "./flex-device.ts";
import {
  deviceMountsOf,
  driverOfPlace,
  type FlexVolume,
  flexDriverOf,
  flexPlugin,
  flexUniqueName,
  flexVolumeOf,
  optionsFor,
  podOptionsOf,
} from "./flex-volume.ts";

export interface FlexPorts extends FlexDevicePorts, OwnershipPorts {
  readonly drivers: FlexDrivers;
  readonly calls: FlexCalls;
  /** Undefined when there is no place that secrets could come from. */
  readonly secret: ((namespace: string, name: string, signal: AbortSignal) => Promise<Secret | undefined>) | undefined;
  readonly random: () => number;
  readonly syncFrequencyMs: number;
  /** Undefined where no volume grows. */
  readonly growth: GrowthReports | undefined;
}

const silent = (): void => {};

/** Volumes of drivers that are programs on this node (FlexVolume). What is on disk and mounted tells who uses what. */
export class FlexVolumes implements VolumeKind {
  readonly plugin = flexPlugin;
  readonly #ports: FlexPorts;
  /** What is mounted for all pods has one hand on it at a time. */
  readonly #turns = new SerialByKey<string>();
  readonly #users = new DeviceUsers();
  readonly #descriptions: DeviceDescriptions;

  constructor(ports: FlexPorts) {
    this.#ports = ports;
    this.#descriptions = new DeviceDescriptions(ports.pluginsDir);
  }

  /** Only what is installed: names from pods would otherwise end up on disk and in metrics. */
  matches(source: VolumeSource): boolean {
    const name = flexDriverOf(source);
    return name !== undefined && this.#ports.drivers.find(name) !== undefined;
  }

  pluginOf(source: VolumeSource): string {
    return flexDriverOf(source) ?? flexPlugin;
  }

  /** Also of drivers that are gone: nobody else could have made it. */
  owns(plugin: string): boolean {
    return !plugin.startsWith("kubernetes.io/") || this.#ports.drivers.find(plugin) !== undefined;
  }

  async setUp(wanted: WantedVolume, context: SetUpContext, signal: AbortSignal): Promise<SetUpResult> {
    const volume = flexVolumeOf(wanted);
    const { drivers } = this.#ports;
    const driver = drivers.find(volume.driver);
    // A pod that has its volume needs nothing more, whatever became of the driver meanwhile.
    if (!context.isFirst && (driver === undefined || wantedGrowth(wanted) === undefined)) {
      return this.#result(wanted, volume, context);
    }
    if (driver === undefined)
      throw new StepError("FindPluginBySpec", `no driver ${volume.driver} in ${drivers.directory}`);
    const { known, ask } = await this.#askable(driver, context.progress, signal).catch((error: unknown) => {
      throw new StepError("FindPluginBySpec", explain(error), error);
    });
    const device = known.capabilities.attach ? await this.#mountDevice(wanted, volume, ask, signal) : undefined;
    if (context.isFirst) {
      const wasMounted = await isMountPoint(wanted.directory);
      if (!wasMounted) await this.#mount(wanted, volume, device, ask, signal);
      if (!volume.readOnly && known.capabilities.fsGroup) await this.#own(wanted, wasMounted, context, signal);
    }
    await this.#grow(wanted, volume, device, ask, !context.isFirst, signal);
    return this.#result(wanted, volume, context);
  }

  async #mountDevice(
    wanted: WantedVolume,
    volume: FlexVolume,
    ask: AskDriver,
    signal: AbortSignal,
  ): Promise<FlexDevice> {
    const name = flexUniqueName(volume);
    return await this.#inTurn(name, signal, async () => {
      this.#users.add(name, userOf(wanted));
      const isMounted = await isMountPoint(
        join(deviceMountsOf(this.#ports.pluginsDir, volume.driver), volume.specName),
      );
      // The kubelet tells such volumes apart by name alone; two that are not the same must not become one.
      if (!(await this.#descriptions.fits(volume, isMounted))) {
        const message = `another volume of driver ${volume.driver} named ${volume.specName} is mounted on this node, with other options`;
        throw new StepError("MountDevice", message);
      }
      await this.#descriptions.note(volume);
      const device = await mountDevice(volume, ask, this.#ports, signal);
      this.#descriptions.mounted(volume);
      return device;
    });
  }

  /** Work on what pods share; who waits for others can be told to stop. */
  async #inTurn<Result>(name: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    const turn = this.#turns.run(name, () => {
      signal.throwIfAborted();
      return work();
    });
    return await unlessAborted(turn, signal);
  }

  async #mount(
    wanted: WantedVolume,
    volume: FlexVolume,
    device: FlexDevice | undefined,
    ask: AskDriver,
    signal: AbortSignal,
  ): Promise<void> {
    const { directory, uid } = wanted;
    const secrets = await this.#secretsOf(volume, signal);
    const hidden = Object.values(secrets).flatMap((value) => [value, Buffer.from(value, "base64").toString("utf8")]);
    await mkdir(directory, { recursive: true, mode: 0o750 });
    try {
      const options = optionsFor(volume, podOptionsOf(wanted, secrets));
      const mounted = await ask("mount", [directory, options], signal, hidden);
      if (mounted !== undefined) return;
      // The driver has mounted the volume for all pods; this one gets to see it.
      const source = device?.mountPath ?? join(deviceMountsOf(this.#ports.pluginsDir, volume.driver), volume.specName);
      const input = { source, target: directory, options: volume.readOnly ? ["ro"] : [] };
      await this.#ports.files.run("bindMount", input, { path: source, owner: uid }, signal);
    } catch (error) {
      if (!(await isMountPoint(directory))) await rmdir(directory).catch(() => {});
      throw error;
    }
  }

  /** Also after a restart, where that is quickly seen to be done: the agent may have ended in the middle of it. */
  async #own(wanted: WantedVolume, wasMounted: boolean, context: SetUpContext, signal: AbortSignal): Promise<void> {
    const policy = wasMounted ? "OnRootMismatch" : undefined;
    await giveToPodGroup({ wanted, path: wanted.directory, readOnly: false, policy }, context, this.#ports, signal);
  }

  async #grow(
    wanted: WantedVolume,
    volume: FlexVolume,
    device: FlexDevice | undefined,
    ask: AskDriver,
    isInUse: boolean,
    signal: AbortSignal,
  ): Promise<void> {
    const { growth: cluster, run } = this.#ports;
    if (cluster === undefined) return;
    const { devicePath = "", mountPath = wanted.directory } = device ?? {};
    const grow = async ({ bytes, bytesBefore }: Growth): Promise<void> => {
      const args = [optionsFor(volume), devicePath, mountPath, String(bytes), String(bytesBefore)];
      if ((await ask("expandfs", args, signal)) !== undefined) return;
      await growFileSystem({ device: devicePath, mountPath }, run, signal);
    };
    await growVolume({ wanted, readOnly: volume.readOnly, isInUse, grow }, { ...this.#ports, cluster }, signal);
  }

  async #secretsOf({ secret, driver }: FlexVolume, signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    if (secret?.name === undefined || secret.name === "") return {};
    const { namespace = "", name } = secret;
    const failed = (reason: string): Error => new Error(`couldn't get secret ${namespace}/${name} err: ${reason}`);
    if (this.#ports.secret === undefined) throw new Error("cannot get kube client");
    const found = await this.#ports.secret(namespace, name, signal);
    if (found === undefined) throw failed(`secrets "${name}" not found`);
    if (found.type !== driver) throw failed(`cannot get secret of type ${driver}`);
    return found.data ?? {};
  }

  async tearDown(place: VolumePlace, signal: AbortSignal, progress: (text: string) => void = silent): Promise<void> {
    const driver = driverOfPlace(place);
    const volume = { driver, specName: place.specName };
    const name = flexUniqueName(volume);
    await this.#unmount(place, driver, progress, signal);
    await this.#inTurn(name, signal, async () => {
      if (this.#users.remove(name, userOf(place))) await this.#letGo(volume, progress, signal);
    });
  }

  async #unmount(
    { directory }: VolumePlace,
    name: string,
    progress: (text: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { drivers } = this.#ports;
    const driver = drivers.find(name);
    if (driver !== undefined) {
      const { ask } = await this.#askable(driver, progress, signal);
      if ((await ask("unmount", [directory], signal)) === undefined && (await isMountPoint(directory)))
        await unmountPatiently(directory, this.#ports, signal);
    }
    if (await isMountPoint(directory)) {
      const why =
        driver === undefined
          ? `there is no driver ${name} in ${drivers.directory}`
          : `driver ${name} was asked to unmount it`;
      throw new Error(`${directory} is mounted, and ${why}; it was not removed`);
    }
    await ifThere(rmdir(directory));
  }

  /** Nobody uses the volume any more. */
  async #letGo(
    volume: Pick<FlexVolume, "driver" | "specName">,
    progress: (text: string) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const name = flexUniqueName(volume);
    const driver = this.#ports.drivers.find(volume.driver);
    const onDisk = await devicesOnDisk(this.#ports.pluginsDir, volume.driver);
    if (onDisk.includes(volume.specName)) {
      if (driver === undefined)
        throw new Error(`there is no driver ${volume.driver} to unmount what is mounted for all pods`);
      const { ask } = await this.#askable(driver, progress, signal);
      await unmountDevice(volume, ask, this.#ports, signal);
    }
    await this.#descriptions.forget(volume);
    this.#ports.inUse?.unstaged(name);
  }

  /** A volume that the pod never got has nothing on disk, but was counted as its own when it was first asked for. */
  async released(uid: PodUid): Promise<void> {
    for (const { device, user } of this.#users.usedBy(`${uid}/`)) {
      if (!this.#users.remove(device, user)) continue;
      const volume = volumeNamed(device);
      // What is mounted for all pods goes with the next clean-up; what is not was at most waited for.
      const onDisk = await devicesOnDisk(this.#ports.pluginsDir, volume.driver);
      if (onDisk.includes(volume.specName)) continue;
      await this.#descriptions.forget(volume);
      this.#ports.inUse?.unstaged(device);
    }
  }

  async restore(places: readonly VolumePlace[]): Promise<void> {
    await this.#ports.drivers.look();
    for (const place of places) {
      const driver = driverOfPlace(place);
      const name = flexUniqueName({ driver, specName: place.specName });
      this.#users.add(name, userOf(place));
      const onDisk = await devicesOnDisk(this.#ports.pluginsDir, driver);
      if (onDisk.includes(place.specName)) this.#ports.inUse?.restore(name);
    }
  }

  /** Volumes that are mounted although no pod uses them: the agent ended between the two steps of letting them go. */
  async cleanUp(signal: AbortSignal): Promise<void> {
    const found: Pick<FlexVolume, "driver" | "specName">[] = [];
    for (const driver of this.#ports.drivers.names()) {
      for (const specName of await devicesOnDisk(this.#ports.pluginsDir, driver)) found.push({ driver, specName });
    }
    const unused = found.filter((volume) => !this.#users.has(flexUniqueName(volume)));
    const clean = (volume: Pick<FlexVolume, "driver" | "specName">): Promise<void> => {
      const name = flexUniqueName(volume);
      return this.#inTurn(name, signal, async () => {
        if (!this.#users.has(name)) await this.#letGo(volume, silent, signal);
      });
    };
    await cleanEach(unused, "volumes that no pod uses are still mounted", clean, signal);
  }

  async measure(place: VolumePlace, signal: AbortSignal): Promise<VolumeUsage | undefined> {
    const known = this.#ports.drivers.known(driverOfPlace(place));
    if (known?.capabilities.supportsMetrics !== true) return undefined;
    return await this.#ports.files.usage(place.directory, place.uid, signal);
  }

  /** Whoever has a claim may have it grow while the pod runs, which we see when we look again. */
  #result({ directory, source }: WantedVolume, { readOnly, driver }: FlexVolume, context: SetUpContext): SetUpResult {
    const { clock, random, syncFrequencyMs, growth, drivers } = this.#ports;
    if (source.type === "claim" && growth !== undefined) {
      context.againAt(clock.now() + syncFrequencyMs * (1 + random() / 2));
    }
    const relabel = !readOnly && (drivers.known(driver)?.capabilities.selinuxRelabel ?? true);
    return { volume: { type: "filesystem", hostPath: directory, readOnly, relabel } };
  }

  run(signal: AbortSignal): Promise<never> {
    return this.#ports.drivers.run(signal);
  }

  #askable(driver: FlexDriver, progress: (text: string) => void, signal: AbortSignal): ReturnType<typeof askable> {
    return askable(driver, this.#ports, progress, signal);
  }
}

/** The reverse of `flexUniqueName`; the name of a volume has no slash. */
function volumeNamed(name: string): Pick<FlexVolume, "driver" | "specName"> {
  const at = name.lastIndexOf("/");
  return { driver: name.slice(0, at), specName: name.slice(at + 1) };
}

function userOf({ uid, specName }: VolumePlace): string {
  return `${uid}/${specName}`;
}
