import { createHash } from "node:crypto";
import { join } from "node:path";
import type { SecretReference } from "../../../ground/model/index.ts";
import type { VolumePlace, VolumeSource, WantedVolume } from "../kinds/kind.ts";
import { mountOptionsOf } from "../kinds/mount-options.ts";
import { contextOption } from "../kinds/selinux.ts";

export const csiPlugin = "kubernetes.io/csi";

/** A volume of a storage driver, whether it comes from a claim or lives and dies with its pod. */
export interface CsiVolume {
  readonly lifecycle: "Persistent" | "Ephemeral";
  readonly driver: string;
  readonly handle: string;
  readonly fsType: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly readOnly: boolean;
  readonly accessModes: readonly string[];
  readonly mountFlags: readonly string[];
  readonly stageSecret: SecretReference | undefined;
  readonly publishSecret: SecretReference | undefined;
  readonly expandSecret: SecretReference | undefined;
  /** The SELinux label that it is mounted with. */
  readonly label?: string | undefined;
}

/** To be mounted with a SELinux label, if there is one. */
export function labelledVolume(volume: CsiVolume, label: string | undefined): CsiVolume {
  if (label === undefined) return volume;
  return { ...volume, label, mountFlags: [...volume.mountFlags, contextOption(label)] };
}

export function isCsi(source: VolumeSource): boolean {
  return (source.type === "inline" ? source.volume.csi : source.persistent.spec?.csi) !== undefined;
}

export function csiVolumeOf({ source, pod, specName }: WantedVolume): CsiVolume {
  if (source.type === "claim") {
    const { csi, accessModes = [] } = source.persistent.spec ?? {};
    if (csi === undefined) throw new Error("not a CSI volume");
    return {
      lifecycle: "Persistent",
      driver: csi.driver,
      handle: csi.volumeHandle,
      fsType: csi.fsType ?? "",
      attributes: csi.volumeAttributes ?? {},
      readOnly: source.readOnly,
      accessModes,
      mountFlags: mountOptionsOf(source.persistent),
      stageSecret: csi.nodeStageSecretRef,
      publishSecret: csi.nodePublishSecretRef,
      expandSecret: csi.nodeExpandSecretRef,
    };
  }
  const { csi } = source.volume;
  if (csi === undefined) throw new Error("not a CSI volume");
  const secret = csi.nodePublishSecretRef?.name;
  return {
    lifecycle: "Ephemeral",
    driver: csi.driver,
    handle: `csi-${sha256(`${pod.metadata.uid}${specName}`)}`,
    fsType: csi.fsType ?? "",
    attributes: csi.volumeAttributes ?? {},
    readOnly: csi.readOnly ?? false,
    accessModes: ["ReadWriteOnce"],
    mountFlags: [],
    stageSecret: undefined,
    publishSecret: secret === undefined ? undefined : { namespace: pod.metadata.namespace, name: secret },
    expandSecret: undefined,
  };
}

/** The name under which the cluster attaches the volume to nodes. */
export function uniqueName({ driver, handle }: Pick<CsiVolume, "driver" | "handle">): string {
  return `${csiPlugin}/${driver}^${handle}`;
}

/** The reverse of `uniqueName`; neither a driver's name nor the part before it has a `^`. */
export function volumeNamed(name: string): Pick<CsiVolume, "driver" | "handle"> {
  const [driver = "", ...handle] = name.slice(csiPlugin.length + 1).split("^");
  return { driver, handle: handle.join("^") };
}

export function attachmentName({ driver, handle }: Pick<CsiVolume, "driver" | "handle">, nodeName: string): string {
  return `csi-${sha256(`${handle}${driver}${nodeName}`)}`;
}

/** Where a volume is staged once for all pods of the node, and its record beside it. */
export function stagingPaths(
  pluginsDir: string,
  { driver, handle }: Pick<CsiVolume, "driver" | "handle">,
): { readonly directory: string; readonly target: string; readonly record: string } {
  const directory = join(pluginsDir, csiPlugin, driver, sha256(handle));
  return { directory, target: join(directory, "globalmount"), record: join(directory, volDataFile) };
}

/** Where a pod's part of a volume lies: the driver makes `mount`, we make what is around it. */
export function publishPaths({ directory }: VolumePlace): { readonly target: string; readonly record: string } {
  return { target: join(directory, "mount"), record: join(directory, volDataFile) };
}

export function blockPaths(pluginsDir: string, specName: string, uid: string) {
  const base = join(pluginsDir, csiPlugin, "volumeDevices");
  return {
    mapDirectory: join(base, specName, "dev"),
    recordDirectory: join(base, specName, "data"),
    record: join(base, specName, "data", volDataFile),
    staging: join(base, "staging", specName),
    publishDirectory: join(base, "publish", specName),
    target: join(base, "publish", specName, uid),
  };
}

export const volDataFile = "vol_data.json";

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
