import type { WalkTurns } from "../../../connections/host/index.ts";
import {
  type EmptyDirVolumeSource,
  hugePageSizeOf,
  type IdentifiedPod,
  parseQuantity,
  podResources,
  wholeUnits,
} from "../../../ground/model/index.ts";
import { usageByCounting } from "../stats/disk-usage.ts";
import { giveToPodGroup, type OwnershipPorts } from "./fs-group.ts";
import type { VolumeKind } from "./kind.ts";
import { isScratchReady, makeScratch, markScratchReady, removeScratch, type ScratchMedium } from "./scratch.ts";

export interface NodeMemory {
  readonly allocatableMemoryBytes: () => bigint;
}

/** Scratch space that lives as long as the pod, on disk, in memory or in huge pages. */
export function emptyDirKind(ports: NodeMemory & OwnershipPorts & { readonly walks: WalkTurns }): VolumeKind {
  return {
    plugin: "kubernetes.io/empty-dir",
    matches: (source) => source.type === "inline" && source.volume.emptyDir !== undefined,
    async setUp(wanted, context, signal) {
      const { pod, source, directory } = wanted;
      const emptyDir = (source.type === "inline" ? source.volume.emptyDir : undefined) ?? {};
      const medium = mediumOf(pod, emptyDir, ports);
      const scratch = { place: wanted, wrapped: false };
      if (!(await isScratchReady(scratch, medium))) {
        await makeScratch(wanted, medium);
        // Errors of single files are ignored: the directory is new, and what a crash left in it is the pod's own.
        await giveToPodGroup(
          { wanted, path: directory, readOnly: false, policy: "Always", isOurs: true },
          context,
          ports,
          signal,
        );
        await markScratchReady(scratch);
      }
      return { volume: { type: "filesystem", hostPath: directory, readOnly: false, relabel: true } };
    },
    tearDown: (place, signal) => removeScratch({ place, wrapped: false }, ports.files.mountWork(place.uid, signal)),
    measure: ({ directory }, signal) => usageByCounting(directory, ports.walks, signal),
  };
}

function mediumOf(pod: IdentifiedPod, emptyDir: EmptyDirVolumeSource, node: NodeMemory): ScratchMedium {
  const { medium = "" } = emptyDir;
  if (medium === "") return { type: "disk" };
  if (medium === "Memory") return { type: "memory", sizeBytes: memorySize(pod, node, emptyDir.sizeLimit) };
  if (medium === "HugePages" || medium.startsWith("HugePages-")) {
    return { type: "huge pages", pageBytes: hugePageSize(pod, medium) };
  }
  throw new Error(`unknown storage medium "${medium}"`);
}

/** How large a volume in memory may grow: no larger than its own limit, the pod's, or what the node has. */
export function memorySize(pod: IdentifiedPod, node: NodeMemory, sizeLimit: string | undefined): bigint {
  let size = node.allocatableMemoryBytes();
  const podLimit = wholeUnits(podResources(pod.spec, "without overhead").limits.get("memory") ?? 0n);
  const limits = [podLimit, sizeLimit === undefined ? 0n : wholeUnits(parseQuantity(sizeLimit))];
  for (const limit of limits) if (limit > 0n && limit < size) size = limit;
  return size;
}

function hugePageSize(pod: IdentifiedPod, medium: string): bigint {
  const requested = new Set<bigint>();
  const containers = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  for (const { resources } of [...containers, pod.spec]) {
    for (const [name, quantity] of Object.entries({ ...resources?.requests, ...resources?.limits })) {
      const size = hugePageSizeOf(name);
      if (size !== undefined && parseQuantity(quantity) > 0n) requested.add(size);
    }
  }
  const missing = `medium ${medium}: hugePages storage requested, but there is no resource request for huge pages`;
  if (medium === "HugePages") {
    const [only, ...others] = requested;
    if (only === undefined) throw new Error(missing);
    if (others.length > 0) {
      throw new Error("medium: HugePages can't be used if container requests multiple huge page sizes");
    }
    return only;
  }
  const size = wholeUnits(parseQuantity(medium.slice("HugePages-".length)));
  if (!requested.has(size)) throw new Error(missing);
  return size;
}
