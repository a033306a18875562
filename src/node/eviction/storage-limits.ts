import {
  canonicalQuantity,
  formatOf,
  formatQuantity,
  type IdentifiedPod,
  isSidecar,
  parseQuantity,
  podResources,
  wholeUnits,
} from "../../ground/model/index.ts";

const resource = "ephemeral-storage";

/** What a pod has on the node's own disk, and in its scratch volumes. */
export interface PodDisk {
  readonly volumes: readonly {
    readonly name: string;
    readonly usedBytes: bigint;
    /** It takes the node's own disk, and counts as the pod's use of that. */
    readonly isLocalEphemeral: boolean;
  }[];
  /** By name. */
  readonly containers: ReadonlyMap<string, ContainerDisk>;
  /** Files of the pod that belong to none of its containers or volumes. */
  readonly ownBytes: bigint;
}

export interface ContainerDisk {
  readonly logBytes: bigint;
  /** What it has written to its own file system. */
  readonly layerBytes: bigint;
}

export interface StorageLimits {
  /** Some scratch volume of the pod has a limit. */
  readonly ofVolumes: boolean;
  /** The pod or a container has a limit for all that it keeps on the node. */
  readonly ofDisk: boolean;
}

/** Whether the pod has to be measured at all. */
export function storageLimitsOf({ spec }: IdentifiedPod): StorageLimits {
  return {
    ofVolumes: (spec.volumes ?? []).some(({ emptyDir }) => bytesOf(emptyDir?.sizeLimit) > 0n),
    ofDisk: podResources(spec, "with overhead").limits.has(resource),
  };
}

/** What a pod has too much of: under the name that metrics know, and in the words of its eviction. */
export interface StorageExcess {
  readonly signal: "emptydirfs.limit" | "ephemeralpodfs.limit" | "ephemeralcontainerfs.limit";
  readonly message: string;
}

/** What the pod has too much of; undefined while it keeps to its limits. */
export function storageExcess(
  pod: IdentifiedPod,
  disk: PodDisk,
  layers: "on the node's disk" | "on a disk of their own",
): StorageExcess | undefined {
  return volumeExcess(pod, disk) ?? podExcess(pod, disk) ?? containerExcess(pod, disk, layers);
}

function volumeExcess({ spec }: IdentifiedPod, { volumes }: PodDisk): StorageExcess | undefined {
  for (const { name, emptyDir } of spec.volumes ?? []) {
    const limit = bytesOf(emptyDir?.sizeLimit);
    const used = volumes.find((volume) => volume.name === name)?.usedBytes ?? 0n;
    if (limit <= 0n || used <= limit) continue;
    const text = canonicalQuantity(emptyDir?.sizeLimit ?? "0");
    const message = `Usage of EmptyDir volume "${name}" exceeds the limit "${text}". `;
    return { signal: "emptydirfs.limit", message };
  }
  return undefined;
}

function podExcess({ spec }: IdentifiedPod, { volumes, containers, ownBytes }: PodDisk): StorageExcess | undefined {
  const limit = podResources(spec, "with overhead").limits.get(resource);
  if (limit === undefined) return undefined;
  let used = ownBytes;
  for (const { isLocalEphemeral, usedBytes } of volumes) if (isLocalEphemeral) used += usedBytes;
  for (const { logBytes, layerBytes } of containers.values()) used += logBytes + layerBytes;
  if (used <= wholeUnits(limit)) return undefined;
  const [first = ""] = spec.containers.flatMap(({ resources }) => resources?.limits?.[resource] ?? []);
  const text = formatQuantity(limit, formatOf(first));
  const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${text}. `;
  return { signal: "ephemeralpodfs.limit", message };
}

function containerExcess(
  { spec }: IdentifiedPod,
  { containers }: PodDisk,
  layers: "on the node's disk" | "on a disk of their own",
): StorageExcess | undefined {
  // Sidecars run beside the others; those that only prepare the pod count for the pod as a whole alone.
  const sidecars = (spec.initContainers ?? []).filter(isSidecar);
  for (const { name, resources } of [...spec.containers, ...sidecars]) {
    const text = resources?.limits?.[resource];
    const limit = bytesOf(text);
    const disk = containers.get(name);
    // As for scratch volumes, a limit of nothing is none; the pod's own is the sum of all.
    if (text === undefined || limit === 0n || disk === undefined) continue;
    const used = disk.logBytes + (layers === "on the node's disk" ? disk.layerBytes : 0n);
    if (used <= limit) continue;
    const message = `Container ${name} exceeded its local ephemeral storage limit "${canonicalQuantity(text)}". `;
    return { signal: "ephemeralcontainerfs.limit", message };
  }
  return undefined;
}

function bytesOf(quantity: string | undefined): bigint {
  return quantity === undefined ? 0n : wholeUnits(parseQuantity(quantity));
}
