import { mkdir, rmdir } from "node:fs/promises";
import { basename, dirname } from "node:path";
import type { RunTool, ScsiDisks } from "../../../connections/host/index.ts";
import { ifThere } from "../../../ground/base/index.ts";
import type { WantedVolume } from "../kinds/kind.ts";
import { addressNamed, type FcAddress, fcDirectory, readFcRecord, removeFcRecord, writeFcRecord } from "./fc-record.ts";
import { dropDisks } from "./multipath.ts";
import type { Attaching, DiskProtocol, RemoteDisk } from "./protocol.ts";

const fcPlugin = "kubernetes.io/fc";

interface FcDisk extends RemoteDisk {
  readonly address: FcAddress;
}

export interface FcPorts {
  readonly scsi: (run: RunTool) => ScsiDisks;
}

/** Disks of a Fibre Channel: they are there, or come to light when the kernel looks again. */
export class Fc implements DiskProtocol<FcDisk> {
  readonly plugin = fcPlugin;
  readonly depth = 1;
  readonly isMeasured = false;
  readonly #ports: FcPorts;

  constructor(ports: FcPorts) {
    this.#ports = ports;
  }

  matches(source: WantedVolume["source"]): boolean {
    return fcSourceOf(source) !== undefined;
  }

  isRecord(): boolean {
    return false;
  }

  diskOf({ source }: WantedVolume): FcDisk {
    const given = fcSourceOf(source);
    if (given === undefined) throw new Error("Spec does not reference a FibreChannel volume type");
    const { targetWWNs = [], lun, wwids = [], fsType = "", readOnly = false } = given;
    const address = addressOf(targetWWNs, lun, wwids);
    const name = address.by === "wwns" ? `[${targetWWNs.join(" ")}]:${lun}` : `[${wwids.join(" ")}]`;
    return {
      address,
      directory: fcDirectory(address),
      uniqueName: `${fcPlugin}/${name}`,
      fsType,
      readOnly: source.type === "claim" ? source.readOnly : readOnly,
    };
  }

  uniqueNamesOf(directory: string): readonly string[] {
    const address = addressNamed(basename(directory));
    if (address === undefined) return [];
    const name = address.by === "wwns" ? `[${address.wwns.join(" ")}]:${address.lun}` : `[${address.wwids.join(" ")}]`;
    return [`${fcPlugin}/${name}`];
  }

  async attach({ address }: FcDisk, { place, run, progress }: Attaching, signal: AbortSignal): Promise<string> {
    await mkdir(dirname(place), { recursive: true, mode: 0o750 });
    await writeFcRecord(place, address);
    await mkdir(place, { recursive: true, mode: 0o750 });
    const scsi = this.#ports.scsi(run);
    const known = await this.#find(address, scsi);
    if (known?.isMap === true) return scsi.devicePath(known.disk);
    progress("looking for the disk");
    await scsi.scanAll(signal);
    const found = await this.#find(address, scsi);
    if (found === undefined) throw new Error("no fc disk found");
    return scsi.devicePath(found.disk);
  }

  async #find(
    address: FcAddress,
    scsi: ScsiDisks,
  ): Promise<{ readonly disk: string; readonly isMap: boolean } | undefined> {
    const disks = await disksOf(address, scsi);
    for (const disk of disks) {
      const map = await scsi.mapOf(disk);
      if (map !== undefined) return { disk: map, isMap: true };
    }
    const disk = disks.at(-1);
    return disk === undefined ? undefined : { disk, isMap: false };
  }

  async detach({ place, others, run }: Omit<Attaching, "progress">, signal: AbortSignal): Promise<void> {
    const address = await readFcRecord(place);
    const scsi = this.#ports.scsi(run);
    // As a block device it has another place of the same name.
    const isShared = (await others()).some((other) => basename(other) === basename(place));
    if (address !== undefined && !isShared) await dropDisks(await disksOf(address, scsi), { scsi, run }, signal);
    await ifThere(rmdir(place));
    await removeFcRecord(place);
  }
}

function fcSourceOf(source: WantedVolume["source"]) {
  return source.type === "inline" ? source.volume.fc : source.persistent.spec?.fc;
}

function addressOf(wwns: readonly string[], lun: number | undefined, wwids: readonly string[]): FcAddress {
  if (wwns.length > 0 && lun !== undefined) return { by: "wwns", wwns: wwns.map(checked), lun };
  // So they are written below /dev/disk/by-id.
  if (wwids.length > 0) return { by: "wwids", wwids: wwids.map((wwid) => checked(wwid.replaceAll(" ", "_"))) };
  throw new Error("fc: no fc disk information found. failed to make a new mounter");
}

async function disksOf(address: FcAddress, scsi: ScsiDisks): Promise<readonly string[]> {
  const named = await scsi.named(address.by === "wwns" ? "by-path" : "by-id");
  if (address.by === "wwids") {
    return address.wwids.map((wwid) => named.get(`scsi-${wwid}`)).filter((disk) => disk !== undefined);
  }
  const ends = address.wwns.map((wwn) => `fc-0x${wwn}-lun-${address.lun}`);
  const isIt = (name: string): boolean =>
    ends.some((end) => name === end || (name.startsWith("pci-") && name.endsWith(`-${end}`)));
  return [...new Set([...named].filter(([name]) => isIt(name)).map(([, disk]) => disk))];
}

/** Texts that become parts of paths; who wrote the pod chose them. */
function checked(name: string): string {
  if (/^[\w][\w.:+=-]*$/.test(name) && name.length <= 128) return name;
  throw new Error(`fc: ${JSON.stringify(name.slice(0, 256))} is not the name of a disk`);
}
