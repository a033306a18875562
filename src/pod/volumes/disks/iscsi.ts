import { mkdir, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { IscsiSession, RunTool, ScsiDisks } from "../../../connections/host/index.ts";
import { type Clock, explain, ifThere, messageOf, SerialByKey } from "../../../ground/base/index.ts";
import type { Secret } from "../../../ground/model/index.ts";
import type { WantedVolume } from "../kinds/kind.ts";
import { ForeignSessions } from "./foreign-sessions.ts";
import { diskNamed, type IscsiDisk, iscsiDiskOf, iscsiPlugin, iscsiSourceOf, iscsiUniqueNames } from "./iscsi-disk.ts";
import {
  hasIscsiRecord,
  type IscsiRecord,
  iscsiRecordFile,
  readIscsiRecord,
  removeIscsiRecord,
  writeIscsiRecord,
} from "./iscsi-record.ts";
import { beginSession, type ChapSecrets, copyInterface, endSession, removeInterface, transportOf } from "./iscsiadm.ts";
import { dropDisks } from "./multipath.ts";
import type { Attaching, DiskProtocol } from "./protocol.ts";

export interface IscsiPorts {
  readonly clock: Clock;
  readonly scsi: (run: RunTool) => ScsiDisks;
  readonly secret: ((namespace: string, name: string, signal: AbortSignal) => Promise<Secret | undefined>) | undefined;
  readonly pluginsDir: string;
}

// Paths that are enough for a volume with several portals, and how often the others are tried.
const enoughPaths = 2;
const fewestAttempts = 2;
const mostAttempts = 5;
const deviceSeconds = 30;
const multipathSeconds = 10;

/** Disks of iSCSI targets. A session is shared by the volumes of its target, and ends with the last of them. */
export class Iscsi implements DiskProtocol<IscsiDisk> {
  readonly plugin = iscsiPlugin;
  readonly depth = 2;
  readonly isMeasured = true;
  readonly #ports: IscsiPorts;
  readonly #foreign: ForeignSessions;
  /** Sessions with a target begin and end one at a time. */
  readonly #targets = new SerialByKey<string>();

  constructor(ports: IscsiPorts) {
    this.#ports = ports;
    this.#foreign = new ForeignSessions(join(ports.pluginsDir, iscsiPlugin, "foreign-sessions.json"));
  }

  matches(source: WantedVolume["source"]): boolean {
    return iscsiSourceOf(source) !== undefined;
  }

  isRecord(name: string): boolean {
    return name.startsWith(iscsiRecordFile);
  }

  diskOf(wanted: WantedVolume): IscsiDisk {
    return iscsiDiskOf(wanted);
  }

  uniqueNamesOf(directory: string): readonly string[] {
    const disk = diskNamed(directory);
    return disk === undefined ? [] : iscsiUniqueNames(disk);
  }

  async attach(disk: IscsiDisk, attaching: Attaching, signal: AbortSignal): Promise<string> {
    const secrets = await this.#secretsOf(disk, signal);
    const transport = await transportOf(disk, attaching.run, signal);
    if (transport === "") throw new Error(`could not parse iface file for ${disk.interface}`);
    if (disk.initiatorName !== "") await copyInterface(disk, attaching.run, signal);
    await this.#inTurn(disk.iqn, signal, () => this.#begin(disk, attaching));
    const paths = await this.#paths(disk, transport, secrets, attaching, signal);
    return await this.#deviceOf(disk, paths, attaching.run, signal);
  }

  /** Short turns: who has volumes of the same target does not wait for the portals that somebody else has named. */
  #inTurn<Result>(iqn: string, signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
    return this.#targets.run(iqn, async () => {
      signal.throwIfAborted();
      return await work();
    });
  }

  /**
   * On disk before the first session: an agent that is killed now leaves a trace of it. In the target's turn, so that a
   * place that is there has begun, and one that has not is none.
   */
  async #begin(disk: IscsiDisk, { place, others, run }: Attaching): Promise<void> {
    const hasBegun = (await hasIscsiRecord(place)) || (await isUsed(disk.iqn, others));
    if (!hasBegun) {
      const sessions = await this.#ports.scsi(run).iscsiSessions(disk.iqn);
      await this.#foreign.note(disk.iqn, [...new Set(sessions.flatMap(({ portals }) => portals))]);
    }
    await mkdir(place, { recursive: true, mode: 0o750 });
    await writeIscsiRecord(place, disk);
  }

  /** The names of the disk below `/dev/disk/by-path`, by portal. */
  async #paths(
    disk: IscsiDisk,
    transport: string,
    secrets: ChapSecrets,
    attaching: Attaching,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const found = new Map<string, string>();
    let lastError: unknown;
    for (let attempt = 1; attempt <= mostAttempts; attempt++) {
      for (const portal of disk.portals) {
        if (found.has(portal)) continue;
        try {
          attaching.progress(`target ${disk.iqn} at ${portal}`);
          found.set(portal, await this.#path(disk, portal, transport, secrets, attaching.run, signal));
        } catch (error) {
          signal.throwIfAborted();
          lastError = error;
        }
      }
      if (found.size === 0) {
        if (disk.initiatorName !== "") await removeInterface(disk.interface, attaching.run, signal).catch(() => {});
        const message = `failed to get any path for iscsi disk, last err seen:\n${explain(lastError)}`;
        throw new Error(message);
      }
      if (found.size === disk.portals.length) break;
      if (found.size >= enoughPaths && attempt >= fewestAttempts) break;
    }
    return [...found.values()];
  }

  async #path(
    disk: IscsiDisk,
    portal: string,
    transport: string,
    secrets: ChapSecrets,
    run: RunTool,
    signal: AbortSignal,
  ): Promise<string> {
    const scsi = this.#ports.scsi(run);
    const session = await this.#inTurn(disk.iqn, signal, async () => {
      const known = await sessionWith(scsi, disk, portal);
      if (known !== undefined) return known;
      await beginSession(disk, portal, secrets, run, signal);
      return await sessionWith(scsi, disk, portal);
    });
    if (session === undefined) throw new Error(`iscsi: no SCSI host for portal ${portal} after logging in`);
    await scsi.scanLun(session.host, disk.lun, signal);
    const address = portal.replaceAll(/[[\]]/g, "");
    const end = `ip-${address}-iscsi-${disk.iqn}-lun-${disk.lun}`;
    const isIt = (name: string): boolean =>
      transport === "tcp" ? name === end : name.startsWith("pci-") && name.endsWith(`-${end}`);
    for (let second = 0; ; second++) {
      const device = [...(await scsi.named("by-path"))].find(([name]) => isIt(name))?.[1];
      if (device !== undefined) return device;
      if (second === deviceSeconds) break;
      await this.#ports.clock.sleep(1_000, signal);
    }
    throw new Error(`Timed out waiting for device at path /dev/disk/by-path/${end} after ${deviceSeconds}s`);
  }

  /** A multipath map above the disks, if there is one; it takes its time where several paths were asked for. */
  async #deviceOf(disk: IscsiDisk, paths: readonly string[], run: RunTool, signal: AbortSignal): Promise<string> {
    const scsi = this.#ports.scsi(run);
    const seconds = disk.portals.length > 1 ? multipathSeconds : 0;
    for (let second = 0; ; second++) {
      for (const path of paths) {
        const map = await scsi.mapOf(path);
        if (map !== undefined) return scsi.devicePath(map);
      }
      if (second >= seconds) return scsi.devicePath(paths[0] ?? "");
      await this.#ports.clock.sleep(1_000, signal);
    }
  }

  async detach({ place, others, run }: Omit<Attaching, "progress">, signal: AbortSignal): Promise<void> {
    const record = await readIscsiRecord(place);
    if (record !== undefined) {
      await this.#inTurn(record.iqn, signal, async () => {
        const left = (await isShared(record, others)) ? [] : await this.#dropDisks(record, run, signal);
        if (left.length === 0 && !(await isUsed(record.iqn, others))) await this.#logOut(record, run, signal);
        await remove(place);
      });
    } else await remove(place);
  }

  #dropDisks({ iqn, lun }: IscsiRecord, run: RunTool, signal: AbortSignal): Promise<readonly string[]> {
    const scsi = this.#ports.scsi(run);
    return scsi.iscsiDisks(iqn, lun).then((disks) => dropDisks(disks, { scsi, run }, signal));
  }

  /** No volume of the target is left. Sessions that somebody else has begun, or has disks of in use, stay. */
  async #logOut(record: IscsiRecord, run: RunTool, signal: AbortSignal): Promise<void> {
    const { iqn } = record;
    const scsi = this.#ports.scsi(run);
    const kept = new Set([...(await this.#foreign.of(iqn)), ...(await portalsInUse(scsi, iqn))]);
    const known = new Set((await scsi.iscsiSessions(iqn)).flatMap(({ portals }) => portals));
    for (const portal of record.portals) {
      // A portal has many spellings, and iscsiadm resolves them: one that the kernel has not may be one that is kept.
      const isSurelyOurs = kept.size === 0 || (known.has(portal) && !kept.has(portal));
      if (isSurelyOurs) await endSession({ portal, iqn, iface: record.interface }, run, signal);
    }
    // By other interfaces, or with portals of volumes that went before.
    for (const { portals } of await scsi.iscsiSessions(iqn)) {
      if (portals.some((portal) => kept.has(portal))) continue;
      const [portal] = portals;
      if (portal !== undefined) await endSession({ portal, iqn, iface: undefined }, run, signal);
    }
    const isOurs = record.initiatorName !== "" && record.interface === `${record.portals[0]}:${record.specName}`;
    if (isOurs) await removeInterface(record.interface, run, signal);
    await this.#foreign.note(iqn, []);
  }

  async #secretsOf({ chapDiscovery, chapSession, secret }: IscsiDisk, signal: AbortSignal): Promise<ChapSecrets> {
    if (!(chapDiscovery || chapSession) || secret?.name === undefined) return {};
    const { namespace = "", name } = secret;
    if (this.#ports.secret === undefined) throw new Error("cannot get kube client");
    const found = await this.#ports.secret(namespace, name, signal).catch((error: unknown) => {
      throw new Error(`couldn't get secret ${namespace}/${name} error: ${messageOf(error)}`, { cause: error });
    });
    if (found === undefined)
      throw new Error(`couldn't get secret ${namespace}/${name} error: secrets "${name}" not found`);
    const entries = Object.entries(found.data ?? {});
    return Object.fromEntries(entries.map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]));
  }
}

async function remove(place: string): Promise<void> {
  await removeIscsiRecord(place);
  await ifThere(rmdir(place));
  await rmdir(dirname(place)).catch(() => {});
}

async function isUsed(iqn: string, places: () => Promise<readonly string[]>): Promise<boolean> {
  return (await places()).some((place) => diskNamed(place)?.iqn === iqn);
}

/** Whether the unit has another place too: by another portal or interface, or as a block device. */
async function isShared({ iqn, lun }: IscsiRecord, places: () => Promise<readonly string[]>): Promise<boolean> {
  return (await places()).map(diskNamed).some((other) => other?.iqn === iqn && other.lun === lun);
}

/** Portals of sessions with a disk that is in use: a pod may have named a target that the node itself lives on. */
async function portalsInUse(scsi: ScsiDisks, iqn: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const session of await scsi.iscsiSessions(iqn)) {
    for (const disk of await scsi.disksOf(session)) {
      if (await scsi.isInUse(disk, new Set())) found.push(...session.portals);
    }
  }
  return found;
}

async function sessionWith(scsi: ScsiDisks, { iqn }: IscsiDisk, portal: string): Promise<IscsiSession | undefined> {
  return (await scsi.iscsiSessions(iqn)).find(({ portals }) => portals.includes(portal));
}
