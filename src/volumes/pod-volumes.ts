import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { loadSyscalls, readMounts, unmountFlags } from "../host/index.ts";
import type { IdentifiedPod, PodUid, Volume } from "../model/index.ts";
import { uidOf } from "../model/index.ts";
import type { PodVolume } from "../runtime/index.ts";
import { VolumeError, type VolumeKind } from "./kind.ts";
import { subPaths } from "./sub-paths.ts";

/** The volumes of every pod on this node: made before its containers start, gone after the last has ended. */
export class PodVolumes {
  readonly #kinds: readonly VolumeKind[];
  readonly #podsDir: string;
  /** How a container is given only a part of a volume. */
  readonly subPaths = subPaths;
  readonly #mounted = new Map<PodUid, ReadonlyMap<string, PodVolume>>();

  constructor(options: { readonly podsDir: string; readonly kinds: readonly VolumeKind[] }) {
    this.#podsDir = options.podsDir;
    this.#kinds = options.kinds;
  }

  /** What is ready for the pod's containers; empty before `mount`. */
  of(uid: PodUid): ReadonlyMap<string, PodVolume> {
    return this.#mounted.get(uid) ?? new Map();
  }

  async mount(pod: IdentifiedPod, signal: AbortSignal): Promise<void> {
    const uid = uidOf(pod);
    const volumes = await Promise.all(
      (pod.spec.volumes ?? []).map(async (volume): Promise<[string, PodVolume]> => {
        const kind = this.#kinds.find((candidate) => candidate.handles(volume));
        if (kind === undefined) throw new VolumeError(volume.name, unsupported(volume));
        const directory = join(this.#podsDir, uid, "volumes", kind.pluginName, volume.name);
        return [volume.name, await kind.mount({ pod, volume, directory }, signal)];
      }),
    );
    this.#mounted.set(uid, new Map(volumes));
  }

  /** Unmounts whatever lies below the pod's volumes directory, then removes it; never looks below a live mount. */
  async unmount(uid: PodUid): Promise<void> {
    const directory = join(this.#podsDir, uid, "volumes");
    const mounts = (await readMounts()).filter(({ mountPoint }) => mountPoint.startsWith(`${directory}/`));
    if (mounts.length > 0) {
      const calls = await loadSyscalls();
      for (const { mountPoint } of mounts.toReversed()) calls.unmount(mountPoint, unmountFlags.noFollow);
    }
    await removeBelow(directory);
    this.#mounted.delete(uid);
  }
}

async function removeBelow(directory: string): Promise<void> {
  let plugins: readonly string[];
  try {
    plugins = await readdir(directory);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw error;
  }
  const stillMounted = (await readMounts()).find(({ mountPoint }) => mountPoint.startsWith(`${directory}/`));
  if (stillMounted !== undefined) {
    throw new Error(`${stillMounted.mountPoint} is still mounted; nothing below ${directory} was removed`);
  }
  await Promise.all(plugins.map((plugin) => rm(join(directory, plugin), { recursive: true, force: true })));
}

function unsupported(volume: Volume): string {
  const source = Object.keys(volume).find((key) => key !== "name") ?? "no source";
  return `volume ${JSON.stringify(volume.name)} is of kind ${source}, which this agent can't mount yet`;
}
