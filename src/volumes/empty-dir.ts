import { chmod, mkdir } from "node:fs/promises";
import { loadSyscalls, readMounts } from "../host/index.ts";
import { type EmptyDirVolumeSource, type IdentifiedPod, parseQuantity, wholeUnits } from "../model/index.ts";
import { VolumeError, type VolumeKind } from "./kind.ts";

/** Scratch space that lives as long as the pod, on disk or in memory. */
export function emptyDirKind(node: { readonly allocatableMemoryBytes: () => bigint }): VolumeKind {
  return {
    pluginName: "kubernetes.io~empty-dir",
    handles: (volume) => volume.emptyDir !== undefined,
    async mount({ pod, volume, directory }) {
      const source = volume.emptyDir ?? {};
      await mkdir(directory, { recursive: true, mode: 0o750 });
      if (source.medium === "Memory") {
        await mountTmpfs(directory, tmpfsSize(pod, source, node.allocatableMemoryBytes()));
      } else if (source.medium !== undefined && source.medium !== "") {
        throw new VolumeError(volume.name, `unknown storage medium "${source.medium}"`);
      }
      // Any user of the pod may write here; chmod, because the mode of mkdir is subject to the umask.
      await chmod(directory, 0o777);
      return { type: "filesystem", hostPath: directory, readOnly: false, relabel: true };
    },
  };
}

async function mountTmpfs(directory: string, bytes: bigint): Promise<void> {
  const mounts = await readMounts();
  if (mounts.some(({ mountPoint, fsType }) => mountPoint === directory && fsType === "tmpfs")) return;
  const calls = await loadSyscalls();
  try {
    // Secrets of a pod in memory must not reach the disk through swap; kernels before 6.4 don't know the option.
    calls.mount("tmpfs", directory, "tmpfs", 0, `size=${bytes},noswap`);
  } catch {
    calls.mount("tmpfs", directory, "tmpfs", 0, `size=${bytes}`);
  }
}

function tmpfsSize(pod: IdentifiedPod, source: EmptyDirVolumeSource, allocatable: bigint): bigint {
  let size = allocatable;
  for (const limit of [
    podMemoryLimit(pod),
    source.sizeLimit === undefined ? 0n : wholeUnits(parseQuantity(source.sizeLimit)),
  ]) {
    if (limit > 0n && limit < size) size = limit;
  }
  return size;
}

/** 0 when any container may use what it likes. */
function podMemoryLimit(pod: IdentifiedPod): bigint {
  const podLevel = pod.spec.resources?.limits?.["memory"];
  if (podLevel !== undefined) return wholeUnits(parseQuantity(podLevel));
  let sum = 0n;
  for (const { resources } of pod.spec.containers) {
    const limit = resources?.limits?.["memory"];
    if (limit === undefined) return 0n;
    sum += wholeUnits(parseQuantity(limit));
  }
  return sum;
}
