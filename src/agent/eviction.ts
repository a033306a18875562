import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { CriClient } from "../connections/cri/index.ts";
import { readDirectoryUsage } from "../connections/host/index.ts";
import { aFewAtOnce, type Clock, hasCode, type Logger, mapAtMost, type TaskScope } from "../ground/base/index.ts";
import {
  containersOf,
  type IdentifiedPod,
  isCriticalPod,
  newestOf,
  type PodUid,
  type RecordPodEvent,
  uidOf,
} from "../ground/model/index.ts";
import { type PodDisk, StorageWatch, type StorageWatchPorts } from "../node/eviction/index.ts";
import type { PodObserver } from "../pod/runtime/index.ts";
import type { PodVolumes } from "../pod/volumes/index.ts";
import type { PodWorkers } from "../pod/workers/index.ts";

interface EvictionParts {
  /** On a machine without an API server every pod comes from a file, so that says nothing of how important it is. */
  readonly isStandalone: boolean;
  readonly cri: CriClient;
  readonly rootDir: string;
  readonly podLogsDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly volumes: PodVolumes;
  readonly observer: PodObserver;
  readonly workers: PodWorkers;
  readonly recordEvent: RecordPodEvent;
  /** For metrics. */
  readonly onEvicted: (signal: string) => void;
}

const graceSeconds = 1;

/** Keeps pods to their limits of local storage, for as long as the scope lives. */
export function startStorageWatch(parts: EvictionParts, scope: TaskScope): void {
  const { workers, recordEvent, clock, log } = parts;
  const watch = new StorageWatch({
    clock,
    log: log.named("eviction"),
    activePods: () => workers.pods().filter((pod) => workers.stateOf(uidOf(pod))?.step === "running"),
    isExempt: (pod) => isExempt(pod, parts.isStandalone),
    measure: (pod, { ofDisk }, signal) => measure(pod, ofDisk, parts, signal),
    layers: layersOf(parts),
    evict(pod, { signal, message }) {
      parts.onEvicted(signal);
      recordEvent(pod, { type: "Warning", reason: "Evicted", message });
      workers.terminate(uidOf(pod), {
        cause: "evicted",
        graceSeconds,
        amendStatus: (status) => ({ ...status, phase: "Failed", reason: "Evicted", message }),
      });
    },
  });
  scope.spawn("limits of local storage", (signal) => watch.run(signal));
}

/** Pods that limits of storage never end. Without a cluster that a pod comes from a file says nothing of its weight. */
export function isExempt(pod: IdentifiedPod, isStandalone: boolean): boolean {
  return isCriticalPod(isStandalone ? { ...pod, metadata: {} } : pod);
}

async function measure(
  pod: IdentifiedPod,
  withFiles: boolean,
  parts: EvictionParts,
  signal: AbortSignal,
): Promise<PodDisk> {
  const uid = uidOf(pod);
  const measured = await parts.volumes.measure(uid, signal);
  const volumes = measured.map(({ name, usage: { usedBytes }, isLocalEphemeral }) => ({
    name,
    usedBytes,
    isLocalEphemeral,
  }));
  if (!withFiles) return { volumes, containers: new Map(), ownBytes: 0n };
  const { namespace, name } = pod.metadata;
  const logDir = join(parts.podLogsDir, `${namespace}_${name}_${uid}`);
  const layers = await layerBytes(uid, parts, signal);
  const observed = await parts.observer.inspect(uid, signal);
  const containers = await mapAtMost(aFewAtOnce, containersOf(pod), async ({ container }) => {
    const logBytes = await bytesIn(join(logDir, container.name), signal);
    const id = newestOf(observed, container.name)?.id ?? "";
    return [container.name, { logBytes, layerBytes: layers.get(id) ?? 0n }] as const;
  });
  // A pod can fill its hosts file as well as any other.
  const ownBytes = await bytesIn(join(parts.rootDir, "pods", uid, "etc-hosts"), signal);
  return { volumes, containers: new Map(containers), ownBytes };
}

async function layerBytes(
  uid: PodUid,
  { cri }: EvictionParts,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, bigint>> {
  const filter = { id: "", podSandboxId: "", labelSelector: { "io.kubernetes.pod.uid": uid } };
  const { stats } = await cri.runtime.listContainerStats({ filter }, { signal });
  return new Map(
    stats.map(({ attributes, writableLayer }) => [attributes?.id ?? "", writableLayer?.usedBytes?.value ?? 0n]),
  );
}

async function bytesIn(path: string, signal: AbortSignal): Promise<bigint> {
  const { bytes } = await readDirectoryUsage(path, "all", signal).catch((error: unknown) => {
    signal.throwIfAborted();
    if (hasCode(error, "ENOENT")) return { bytes: 0 };
    throw error;
  });
  return BigInt(bytes);
}

/** Where containers write does not change while the agent runs. */
function layersOf({ cri, rootDir }: EvictionParts): StorageWatchPorts["layers"] {
  let known: Awaited<ReturnType<StorageWatchPorts["layers"]>> | undefined;
  return async (signal) => {
    if (known !== undefined) return known;
    const { imageFilesystems } = await cri.images.imageFsInfo({}, { signal });
    const mountpoint = imageFilesystems[0]?.fsId?.mountpoint;
    if (mountpoint === undefined) return "on the node's disk";
    const [images, root] = await Promise.all([stat(mountpoint), stat(rootDir)]);
    known = images.dev === root.dev ? "on the node's disk" : "on a disk of their own";
    return known;
  };
}
