import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { ImageService, MeasureLayer, RuntimeService } from "../../connections/cri/index.ts";
import { countFiles } from "../../connections/host/index.ts";
import { aFewAtOnce, ifThere, mapAtMost } from "../../ground/base/index.ts";
import {
  containersOf,
  type IdentifiedPod,
  newestOf,
  type ObservedPod,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";
import { type ContainerUse, type DiskUse, type Held, nothingHeld } from "./plan/usage.ts";
import type { PodDisk, StorageWatchPorts } from "./storage-watch.ts";

export interface PodDiskPorts {
  readonly runtime: Pick<RuntimeService, "listContainerStats">;
  readonly images: Pick<ImageService, "imageFsInfo">;
  /** What a container has written until now; statistics may be older than what filled the disk. */
  readonly measureLayer: MeasureLayer;
  readonly rootDir: string;
  /** Where the runtime writes the logs of this pod. */
  readonly logDirectoryOf: (pod: IdentifiedPod) => string;
  /** The label by which the runtime knows whose a container is. */
  readonly podUidLabel: string;
  readonly volumes: {
    measure(
      uid: PodUid,
      signal: AbortSignal,
    ): Promise<
      readonly {
        readonly name: string;
        readonly usage: { readonly usedBytes: bigint; readonly inodesUsed: bigint };
        readonly isLocalEphemeral: boolean;
      }[]
    >;
  };
  readonly inspect: (uid: PodUid, signal: AbortSignal) => Promise<ObservedPod>;
}

interface Layer extends Held {
  /** Where the runtime has it. */
  readonly mountpoint: string;
}

/** Measures what a pod holds on the node's disk: volumes, logs, the layers its containers write to, its own files. */
export class PodDiskMeter {
  readonly #ports: PodDiskPorts;
  #layers: Awaited<ReturnType<StorageWatchPorts["layers"]>> | undefined;

  constructor(ports: PodDiskPorts) {
    this.#ports = ports;
  }

  readonly measure: StorageWatchPorts["measure"] = async (pod, { ofDisk }, signal) => {
    const uid = uidOf(pod);
    const measured = await this.#ports.volumes.measure(uid, signal);
    const volumes = measured.map(({ name, usage: { usedBytes }, isLocalEphemeral }) => ({
      name,
      usedBytes,
      isLocalEphemeral,
    }));
    if (!ofDisk) return { volumes, containers: new Map(), ownBytes: 0n };
    return { volumes, ...(await this.#measureFiles(pod, signal)) };
  };

  /** Where containers write does not change while the agent runs. */
  readonly layers: StorageWatchPorts["layers"] = async (signal) => {
    if (this.#layers !== undefined) return this.#layers;
    const { imageFilesystems } = await this.#ports.images.imageFsInfo({}, { signal });
    const mountpoint = imageFilesystems[0]?.fsId?.mountpoint;
    if (mountpoint === undefined) return "on the node's disk";
    const [images, root] = await Promise.all([stat(mountpoint), stat(this.#ports.rootDir)]);
    this.#layers = images.dev === root.dev ? "on the node's disk" : "on a disk of their own";
    return this.#layers;
  };

  async #measureFiles(pod: IdentifiedPod, signal: AbortSignal): Promise<Pick<PodDisk, "containers" | "ownBytes">> {
    const uid = uidOf(pod);
    const logDir = this.#ports.logDirectoryOf(pod);
    const layers = await this.#layersOf(uid, signal);
    const observed = await this.#ports.inspect(uid, signal);
    const containers = await mapAtMost(aFewAtOnce, containersOf(pod), async ({ container }) => {
      const logBytes = await bytesIn(join(logDir, container.name), signal);
      const id = newestOf(observed, container.name)?.id ?? "";
      return [container.name, { logBytes, layerBytes: BigInt(layers.get(id)?.bytes ?? 0) }] as const;
    });
    const ownBytes = await ownFileBytes(join(this.#ports.rootDir, "pods", uid), signal);
    return { containers: new Map(containers), ownBytes };
  }

  /** What the pod holds, by what becomes of it when the node takes it off. */
  async use(pod: IdentifiedPod, signal: AbortSignal): Promise<{ disk: DiskUse; containers: readonly ContainerUse[] }> {
    const uid = uidOf(pod);
    const volumes = await this.#ports.volumes.measure(uid, signal);
    const isHostPath = new Set((pod.spec.volumes ?? []).flatMap(({ name, hostPath }) => (hostPath ? [name] : [])));
    const held = volumes.map(({ name, usage, isLocalEphemeral }) => ({
      kind: isLocalEphemeral ? "own" : isHostPath.has(name) ? "host" : "elsewhere",
      held: { bytes: Number(usage.usedBytes), inodes: Number(usage.inodesUsed) },
    }));
    const ofKind = (kind: string): Held =>
      sumOf(held.filter((volume) => volume.kind === kind).map((each) => each.held));
    const layers = await this.#layersNow(await this.#layersOf(uid, signal), signal);
    const observed = await this.#ports.inspect(uid, signal);
    const logDir = this.#ports.logDirectoryOf(pod);
    const containers = await mapAtMost(aFewAtOnce, containersOf(pod), async ({ container: { name } }) => ({
      name,
      layer: layers.get(newestOf(observed, name)?.id ?? "") ?? nothingHeld,
      logs: await filesIn(join(logDir, name), signal),
    }));
    const podDir = join(this.#ports.rootDir, "pods", uid);
    const ownFiles = [
      await filesIn(join(podDir, "etc-hosts"), signal),
      await filesIn(join(podDir, "containers"), signal),
    ];
    return {
      disk: {
        layers: sumOf(containers.map(({ layer }) => layer)),
        logs: sumOf([...containers.map(({ logs }) => logs), ...ownFiles]),
        ownVolumes: ofKind("own"),
        hostVolumes: ofKind("host"),
      },
      containers: containers.map(({ name, layer, logs }) => ({ name, diskBytes: layer.bytes + logs.bytes })),
    };
  }

  async #layersNow(layers: ReadonlyMap<string, Layer>, signal: AbortSignal): Promise<ReadonlyMap<string, Held>> {
    const measured = await mapAtMost(aFewAtOnce, [...layers], async ([id, layer]) => {
      const found = await this.#ports.measureLayer({ id, mountpoint: layer.mountpoint }, signal).catch(() => undefined);
      signal.throwIfAborted();
      return [id, found ?? layer] as const;
    });
    return new Map(measured);
  }

  /** What containers have written to their own file systems, by their ids. */
  async #layersOf(uid: PodUid, signal: AbortSignal): Promise<ReadonlyMap<string, Layer>> {
    const filter = { id: "", podSandboxId: "", labelSelector: { [this.#ports.podUidLabel]: uid } };
    const { stats } = await this.#ports.runtime.listContainerStats({ filter }, { signal });
    return new Map(
      stats.map(({ attributes, writableLayer }) => [
        attributes?.id ?? "",
        {
          bytes: Number(writableLayer?.usedBytes?.value ?? 0n),
          inodes: Number(writableLayer?.inodesUsed?.value ?? 0n),
          mountpoint: writableLayer?.fsId?.mountpoint ?? "",
        },
      ]),
    );
  }
}

/** A pod can fill its hosts file and the files for its last words as well as any other. */
export async function ownFileBytes(podDir: string, signal: AbortSignal): Promise<bigint> {
  return (await bytesIn(join(podDir, "etc-hosts"), signal)) + (await bytesIn(join(podDir, "containers"), signal));
}

async function bytesIn(path: string, signal: AbortSignal): Promise<bigint> {
  return BigInt((await filesIn(path, signal)).bytes);
}

async function filesIn(path: string, signal: AbortSignal): Promise<Held> {
  return (await ifThere(countFiles(path, { depth: "all" }, signal))) ?? nothingHeld;
}

function sumOf(parts: readonly Held[]): Held {
  return parts.reduce(
    (sum, { bytes, inodes }) => ({ bytes: sum.bytes + bytes, inodes: sum.inodes + inodes }),
    nothingHeld,
  );
}
