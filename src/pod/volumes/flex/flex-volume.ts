import { basename, dirname, join } from "node:path";
import { goJson } from "../../../ground/base/index.ts";
import type { SecretReference } from "../../../ground/model/index.ts";
import type { VolumePlace, VolumeSource, WantedVolume } from "../kinds/kind.ts";

export const flexPlugin = "kubernetes.io/flexvolume";

/** A volume of a driver that is a program on this node. */
export interface FlexVolume {
  /** `vendor/driver`. */
  readonly driver: string;
  readonly specName: string;
  readonly fsType: string;
  readonly readOnly: boolean;
  readonly options: Readonly<Record<string, string>>;
  readonly secret: SecretReference | undefined;
}

export function flexDriverOf(source: VolumeSource): string | undefined {
  return (source.type === "inline" ? source.volume.flexVolume : source.persistent.spec?.flexVolume)?.driver;
}

export function flexVolumeOf({ source, specName, pod }: WantedVolume): FlexVolume {
  const { namespace } = pod.metadata;
  if (source.type === "inline") {
    const { flexVolume } = source.volume;
    if (flexVolume === undefined) throw new Error("not a flex volume");
    const { driver, fsType = "", readOnly = false, options = {}, secretRef } = flexVolume;
    const secret = secretRef === undefined ? undefined : { namespace, name: secretRef.name };
    return { driver, specName, fsType, readOnly, options, secret };
  }
  const { flexVolume } = source.persistent.spec ?? {};
  if (flexVolume === undefined) throw new Error("not a flex volume");
  const { driver, fsType = "", options = {}, secretRef } = flexVolume;
  const secret = secretRef && { name: secretRef.name, namespace: secretRef.namespace || namespace };
  return { driver, specName, fsType, readOnly: source.readOnly, options, secret };
}

/** What a driver is told of a volume. Nobody who writes a pod can say these names in our place. */
export function optionsFor(volume: FlexVolume, more: Readonly<Record<string, string>> = {}): string {
  const told: Record<string, string> = {
    ...volume.options,
    ...more,
    "kubernetes.io/fsType": volume.fsType,
    "kubernetes.io/readwrite": volume.readOnly ? "ro" : "rw",
    "kubernetes.io/pvOrVolumeName": volume.specName,
  };
  return goJson(Object.fromEntries(Object.entries(told).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** What only the pod's own mount is told. `secrets`: encoded as the API has them. */
export function podOptionsOf(
  { pod, uid }: WantedVolume,
  secrets: Readonly<Record<string, string>>,
): Record<string, string> {
  const { name, namespace } = pod.metadata;
  const { serviceAccountName = "", securityContext } = pod.spec;
  const group = securityContext?.fsGroup;
  return {
    "kubernetes.io/pod.name": name,
    "kubernetes.io/pod.namespace": namespace,
    "kubernetes.io/pod.uid": uid,
    "kubernetes.io/serviceAccount.name": serviceAccountName,
    ...(group !== undefined && { "kubernetes.io/mounterArgs.FsGroup": String(group) }),
    ...Object.fromEntries(Object.entries(secrets).map(([key, value]) => [`kubernetes.io/secret/${key}`, value])),
  };
}

/** The driver whose volume lies there: its name is the directory's. */
export function driverOfPlace({ directory }: VolumePlace): string {
  return basename(dirname(directory)).replaceAll("~", "/");
}

/** Where the volumes of a driver are mounted once for all pods. */
export function deviceMountsOf(pluginsDir: string, driver: string): string {
  return join(pluginsDir, flexPlugin, driver, "mounts");
}

/** The name under which the cluster attaches the volume to nodes. */
export function flexUniqueName({ driver, specName }: Pick<FlexVolume, "driver" | "specName">): string {
  return `${driver}/${specName}`;
}
