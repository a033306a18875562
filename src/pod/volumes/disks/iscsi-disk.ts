import type { SecretReference } from "../../../ground/model/index.ts";
import type { VolumeSource, WantedVolume } from "../kinds/kind.ts";
import type { RemoteDisk } from "./protocol.ts";

export const iscsiPlugin = "kubernetes.io/iscsi";

/** A logical unit of an iSCSI target. */
export interface IscsiDisk extends RemoteDisk {
  readonly specName: string;
  /** With their ports; the first one names the disk. */
  readonly portals: readonly string[];
  readonly iqn: string;
  readonly lun: number;
  /** The interface that the volume names, and the one it is reached by: another one when it has an initiator's name. */
  readonly configuredInterface: string;
  readonly interface: string;
  readonly initiatorName: string;
  readonly chapDiscovery: boolean;
  readonly chapSession: boolean;
  readonly secret: SecretReference | undefined;
}

export function iscsiSourceOf(source: VolumeSource) {
  return source.type === "inline" ? source.volume.iscsi : source.persistent.spec?.iscsi;
}

export function iscsiDiskOf({ source, specName, pod }: WantedVolume): IscsiDisk {
  const given = iscsiSourceOf(source);
  if (given === undefined) throw new Error("Spec does not reference an ISCSI volume type");
  const { iqn, lun, targetPortal, initiatorName = "", iscsiInterface = "default", secretRef, fsType = "" } = given;
  const portals = [...new Set([targetPortal, ...(given.portals ?? [])].map(withPort))];
  const configuredInterface = checked("interface", iscsiInterface);
  const ownInterface = `${portals[0]}:${specName}`;
  const namespace = (secretRef as SecretReference | undefined)?.namespace || pod.metadata.namespace;
  const disk = {
    specName,
    portals: portals.map((portal) => checked("portal", portal)),
    iqn: checked("target", iqn),
    lun,
    configuredInterface,
    interface: initiatorName === "" ? configuredInterface : ownInterface,
    initiatorName: initiatorName === "" ? "" : checked("initiator", initiatorName),
    chapDiscovery: given.chapAuthDiscovery ?? false,
    chapSession: given.chapAuthSession ?? false,
    secret: secretRef?.name ? { namespace, name: secretRef.name } : undefined,
    fsType,
    readOnly: source.type === "claim" ? source.readOnly : (given.readOnly ?? false),
    uniqueName: `${iscsiPlugin}/${targetPortal}:${iqn}:${lun}`,
  };
  const directory = directoryOf(disk);
  const named = diskNamed(directory);
  // Who uses a target is told by the names of places: one that reads as another target's would keep or cost others theirs.
  if (named?.iqn !== disk.iqn || named.lun !== lun || named.portals[0] !== disk.portals[0]) {
    throw new Error(`iscsi: ${JSON.stringify(directory.slice(0, 512))} is not the name of a disk`);
  }
  return { ...disk, directory };
}

function directoryOf(disk: Pick<IscsiDisk, "interface" | "portals" | "iqn" | "lun">): string {
  return `iface-${disk.interface}/${disk.portals[0]}-${disk.iqn}-lun-${disk.lun}`;
}

/** What a directory is named after; undefined for one that is of nobody's making. */
export function diskNamed(directory: string): Pick<IscsiDisk, "interface" | "portals" | "iqn" | "lun"> | undefined {
  const found = /(?:^|\/)iface-([^/]+)\/(\S+?)-((?:iqn|eui|naa)\.[^/]+)-lun-(\d+)$/.exec(directory);
  const [, ownInterface, portal, iqn, lun] = found ?? [];
  if (ownInterface === undefined || portal === undefined || iqn === undefined) return undefined;
  return { interface: ownInterface, portals: [portal], iqn, lun: Number(lun) };
}

const defaultPort = ":3260";

function withPort(portal: string): string {
  return portal.includes(":") ? portal : `${portal}${defaultPort}`;
}

/** The cluster has the portal as somebody wrote it, and that may have been without its port. */
export function iscsiUniqueNames({ portals: [portal = ""], iqn, lun }: NonNullable<ReturnType<typeof diskNamed>>) {
  const bare = portal.endsWith(defaultPort) ? [portal.slice(0, -defaultPort.length)] : [];
  return [portal, ...bare].map((name) => `${iscsiPlugin}/${name}:${iqn}:${lun}`);
}

/** Texts that become parts of paths and arguments of programs; who wrote the pod chose them. */
function checked(what: string, text: string): string {
  if (/^[\w[][\w.:[\]-]*$/.test(text) && text.length <= 223) return text;
  throw new Error(`iscsi: ${JSON.stringify(text.slice(0, 256))} is not the name of a ${what}`);
}
