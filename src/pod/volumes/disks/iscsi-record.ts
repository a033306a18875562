import { readFile, unlink } from "node:fs/promises";
import { join } from "node:path";
import { ifThere, isThere, saveFile } from "../../../ground/base/index.ts";
import { diskNamed, type IscsiDisk } from "./iscsi-disk.ts";

export const iscsiRecordFile = "iscsi.json";

/** What is needed to let go of a disk, without anything else than its place. */
export interface IscsiRecord extends Pick<IscsiDisk, "portals" | "iqn" | "lun" | "interface" | "initiatorName"> {
  readonly specName: string;
}

/** In the form that the Go kubelet writes. Whatever is mounted there later hides it, until it is needed. */
export async function writeIscsiRecord(place: string, disk: IscsiDisk): Promise<void> {
  const fields = {
    VolName: disk.specName,
    Portals: disk.portals,
    Iqn: disk.iqn,
    Lun: String(disk.lun),
    InitIface: disk.configuredInterface,
    Iface: disk.interface,
    InitiatorName: disk.initiatorName,
    MetricsProvider: null,
  };
  await saveFile(join(place, iscsiRecordFile), `${JSON.stringify(fields)}\n`, 0o644);
}

/** What is written in a place or, where that can't be read, what its name says; undefined where neither makes sense. */
export async function readIscsiRecord(place: string): Promise<IscsiRecord | undefined> {
  const text = await ifThere(readFile(join(place, iscsiRecordFile), "utf8"));
  const named = diskNamed(place);
  const fallback = named && { ...named, initiatorName: "", specName: "" };
  if (text === undefined) return fallback;
  try {
    const fields = JSON.parse(text) as Readonly<Record<string, unknown>>;
    const { VolName, Portals, Iqn, Lun, Iface, InitiatorName } = fields;
    if (!isTexts(Portals) || typeof Iqn !== "string" || typeof Iface !== "string") return fallback;
    return {
      specName: typeof VolName === "string" ? VolName : "",
      portals: Portals,
      iqn: Iqn,
      lun: Number(Lun),
      interface: Iface,
      initiatorName: typeof InitiatorName === "string" ? InitiatorName : "",
    };
  } catch {
    return fallback;
  }
}

export function hasIscsiRecord(place: string): Promise<boolean> {
  return isThere(join(place, iscsiRecordFile));
}

export async function removeIscsiRecord(place: string): Promise<void> {
  for (const file of [iscsiRecordFile, `${iscsiRecordFile}.tmp`]) await ifThere(unlink(join(place, file)));
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
