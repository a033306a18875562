import { liveLayers } from "../connections/cri/index.ts";
import type { Recorders } from "../connections/kube/index.ts";
import { type TaskScope, Topic } from "../ground/base/index.ts";
import { evictionSettingsOf } from "../ground/config/index.ts";
import { type IdentifiedPod, isTerminalPhase, kubepodsCgroup, uidOf } from "../ground/model/index.ts";
import {
  type CandidateLife,
  DiskSignals,
  DiskUses,
  EvictionManager,
  type EvictPorts,
  evict,
  exemptionOf,
  MemoryAlarms,
  type NodePressure,
  PodDiskMeter,
  PodMeter,
  readSignals,
  StorageWatch,
} from "../node/eviction/index.ts";
import type { ConfiguredImageGc } from "../pod/images/index.ts";
import { type ContainerGc, type NodeContext, podLogDirectory, runtimeLabels } from "../pod/runtime/index.ts";
import type { PodVolumes } from "../pod/volumes/index.ts";
import { endByNode, type PodState, type PodWorkers } from "../pod/workers/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

interface EvictionParts {
  readonly context: NodeContext;
  readonly sight: PodSight;
  readonly workers: PodWorkers;
  readonly volumes: PodVolumes;
  readonly events: Recorders;
  readonly cluster: Cluster | undefined;
  readonly pressure: NodePressure;
  readonly images: ConfiguredImageGc;
  readonly gc: ContainerGc;
}

/** What keeps the node from running short, and pods to their limits of local storage. */
export interface EvictionWatches {
  readonly manager: EvictionManager;
  start(scope: TaskScope): void;
}

export function buildEviction(base: Foundation, parts: EvictionParts): EvictionWatches {
  const meter = diskMeter(base, parts);
  const manager = buildManager(base, parts, meter);
  const storage = base.config.kubelet.localStorageCapacityIsolation ? buildStorageWatch(base, parts, meter) : undefined;
  return {
    manager,
    start(scope) {
      scope.spawn("eviction", (signal) => manager.run(signal));
      if (storage !== undefined) scope.spawn("limits of local storage", (signal) => storage.run(signal));
    },
  };
}

/** Takes off pods when the node runs short of memory, disk or processes. */
function buildManager(base: Foundation, parts: EvictionParts, disk: PodDiskMeter): EvictionManager {
  const { config, clock, cri, host, rootDir, metrics } = base;
  const { context, sight, events, cluster, pressure, images, gc, workers } = parts;
  const log = base.log.named("eviction");
  const sources = host.pressure;
  const naming = () => context.cgroups;
  const isStandalone = cluster === undefined;
  const disks = new DiskSignals({ images: cri.images, sources, rootDir, clock, log });
  const ports = evictPorts(base, parts);
  const memoryIsShort = new Topic();
  const manager = new EvictionManager(evictionSettingsOf(config), {
    clock,
    log,
    read: (signal) => readSignals({ sources, disks, naming }, signal),
    alarms: new MemoryAlarms({ sources, log, tell: memoryIsShort.tell }),
    alarmPath: (signal) => (signal === "memory.available" ? "/" : kubepodsCgroup(naming())),
    pods: () => present(sight, (pod) => exemptionOf(pod, isStandalone)),
    meter: new PodMeter({
      cgroups: sources.cgroups,
      naming,
      observed: (uid) => sight.observer.latest(uid),
      runtime: cri.runtime,
      clock,
      log,
    }),
    disks: new DiskUses({ clock, log, measure: (pod, signal) => disk.use(pod, signal) }),
    reclaim: (means, signal) => (means === "images" ? images.deleteUnused(signal) : gc.deleteAllUnused(signal)),
    evict: (pod, eviction) => evict(pod, eviction, ports),
    hasten: (pod, grace) => {
      const atOnce = grace === "at once";
      workers.terminate(uidOf(pod), { cause: "evicted", graceSeconds: atOnce ? 0 : grace, atOnce });
    },
    recordNodeEvent: events.node,
    onConditions: pressure.set,
    onStatsAge: metrics.pods.onEvictionStatsAge,
  });
  memoryIsShort.on(() => manager.lookNow());
  return manager;
}

/** Pods that have something which they could give back. */
function present({ table }: PodSight, exemption: (pod: IdentifiedPod) => string | undefined) {
  return table.pods().flatMap((pod) => {
    const state = table.stateOf(uidOf(pod));
    const life = state && lifeOf(pod, state);
    return life === undefined ? [] : [{ pod, life, exemption: exemption(pod) }];
  });
}

function lifeOf(pod: IdentifiedPod, state: PodState): CandidateLife | undefined {
  switch (state.step) {
    case "running":
      // One that had ended before this agent began is taken up until the runtime says that nothing of it is left.
      return { step: isTerminalPhase(pod.status?.phase) ? "stopped" : "running" };
    case "terminating":
      return { step: "stopping", killAt: state.killDeadline, isAtOnce: state.graceSeconds === 0 };
    case "terminated":
      return { step: "stopped" };
    case "finished":
      return undefined;
  }
}

function evictPorts({ clock, metrics, scope }: Foundation, { events, workers }: EvictionParts): EvictPorts {
  return {
    clock,
    recordEvent: events.pod,
    onEvicted: metrics.pods.onEvicted,
    endPod: (pod, request) => {
      scope.spawn("take off", (signal) => endByNode(pod, request, { workers, recordEvent: events.pod, clock }, signal));
    },
  };
}

function diskMeter({ cri, rootDir }: Foundation, { context, sight, volumes }: EvictionParts): PodDiskMeter {
  return new PodDiskMeter({
    runtime: cri.runtime,
    images: cri.images,
    measureLayer: liveLayers(cri),
    rootDir,
    logDirectoryOf: (pod) => podLogDirectory(context, pod),
    podUidLabel: runtimeLabels.podUid,
    volumes,
    inspect: (uid, signal) => sight.observer.look(uid, signal),
  });
}

/** Keeps pods to their limits of local storage. */
function buildStorageWatch(base: Foundation, parts: EvictionParts, meter: PodDiskMeter): StorageWatch {
  const { sight, cluster } = parts;
  const isStandalone = cluster === undefined;
  const ports = evictPorts(base, parts);
  return new StorageWatch({
    clock: base.clock,
    log: base.log.named("eviction"),
    activePods: () =>
      present(sight, () => undefined).flatMap(({ pod, life }) => (life.step === "running" ? [pod] : [])),
    isExempt: (pod) => exemptionOf(pod, isStandalone) !== undefined,
    measure: meter.measure,
    layers: meter.layers,
    evict: (pod, excess) => evict(pod, { ...excess, grace: 1, isDisruption: false }, ports),
  });
}
