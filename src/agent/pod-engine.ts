import { join } from "node:path";
import { type Clock, KeyedWorkers, type Ledger, type Logger, type TaskScope } from "../base/index.ts";
import type { ContainerHint, RuntimeService } from "../cri/index.ts";
import {
  containerHash,
  type IdentifiedPod,
  newestOf,
  type ObservedPod,
  type PodUid,
  type RecordNodeEvent,
  type RecordPodEvent,
  uidOf,
} from "../model/index.ts";
import { type Admission, PodRegistry } from "../pods/index.ts";
import { FileProbeStore, Probes, probeRunner } from "../probes/index.ts";
import {
  anywhere,
  type ContainerContext,
  ContainerGc,
  ContainerKiller,
  ContainerRemoval,
  ContainerStarter,
  followHints,
  LifecycleHooks,
  type NodeContext,
  noDeviceGrants,
  PodObserver,
  Relist,
  RuntimeStatus,
  removePodLogs,
  runtimeLabels,
  type SandboxContext,
  type StarterPorts,
} from "../runtime/index.ts";
import type { PodMux } from "../sources/index.ts";
import { readTerminationText, StatusStore } from "../status/index.ts";
import { type PodVolumes, readVolumeFile } from "../volumes/index.ts";
import { PodMemoryFiles, PodWorkers } from "../workers/index.ts";
import { execThrough } from "./exec.ts";
import { keepCollecting } from "./garbage.ts";
import { noteMilestones } from "./ledger-notes.ts";
import { sandboxContextOf } from "./node-context.ts";
import { PodSetup, type PodSetupPorts } from "./pod-setup.ts";
import { PodViews } from "./pod-views.ts";

/** The pod engine: from the stream of wanted pods to running containers, and their statuses. */
export interface PodEngine {
  readonly views: PodViews;
  readonly statuses: StatusStore;
  readonly workers: PodWorkers;
  readonly runtimeStatus: RuntimeStatus;
  readonly ledger: Ledger<PodUid>;
  readonly observer: PodObserver;
  readonly relist: Relist;
  /** Every pod that is wanted, worked on or known to the runtime; undefined while not every source has spoken. */
  knownPods(signal: AbortSignal): Promise<ReadonlySet<PodUid> | undefined>;
}

export interface PodEngineParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: Ledger<PodUid>;
  readonly runtime: RuntimeService;
  readonly runtimeName: string;
  readonly hints: {
    readonly source: string | undefined;
    subscribe(signal: AbortSignal): AsyncIterable<ContainerHint>;
  };
  readonly mux: PodMux;
  readonly admission: Admission;
  readonly node: NodeContext;
  readonly hostIPs: readonly string[];
  readonly legacyLogDir: string;
  readonly cgroups: PodSetupPorts["cgroups"];
  readonly volumes: PodVolumes;
  readonly services: () => ContainerContext["services"];
  /** The handler that the pod's RuntimeClass names; throws while the class is unknown. */
  readonly runtimeHandlerOf: (pod: IdentifiedPod) => string;
  readonly readConfigMap: ContainerContext["readConfigMap"];
  readonly readSecret: ContainerContext["readSecret"];
  readonly images: Pick<StarterPorts, "ensureImage" | "prefetchImage">;
  readonly recordPodEvent: RecordPodEvent;
  readonly recordNodeEvent: RecordNodeEvent;
  /** Nothing of the pod is left on the node. */
  readonly onGone: (uid: PodUid) => void;
  readonly settings: {
    readonly crashBackoff: { readonly initialMs: number; readonly maxMs: number };
    readonly startSlots: number;
    readonly runtimeRequestTimeoutMs: number;
    readonly minimumContainerAgeMs: number;
    readonly maxDeadPerContainer: number;
    /** Negative: no limit. */
    readonly maxDeadContainers: number;
  };
}

export function startPodEngine(parts: PodEngineParts, scope: TaskScope): PodEngine {
  const { clock, log, ledger, runtime, node, mux, recordPodEvent } = parts;
  const podsDir = join(node.rootDir, "pods");
  const logs = { podLogsDir: node.podLogsDir, legacyDir: parts.legacyLogDir, log };
  const removal = new ContainerRemoval(logs, { runtime, log });
  const observer = new PodObserver({ runtime, clock });
  const statuses = new StatusStore(log.named("status"));
  const memory = new PodMemoryFiles(scope, { podsDir, log: log.named("memory") });
  const runtimeStatus = new RuntimeStatus({ runtime, clock, log, onChange: () => workers.wakeAll() });
  const exec = execThrough(runtime);
  const probes = new Probes({
    clock,
    log: log.named("probes"),
    scope,
    recordEvent: recordPodEvent,
    ledger,
    run: probeRunner(exec, clock, { concurrency: 8, runtimeTimeoutMs: parts.settings.runtimeRequestTimeoutMs }),
    store: new FileProbeStore(podsDir, log.named("probes")),
  });
  const podIps = (pod: IdentifiedPod, observed: ObservedPod | undefined): readonly string[] =>
    pod.spec.hostNetwork === true ? parts.hostIPs : (observed?.ips ?? []);
  const hooks = new LifecycleHooks({
    clock,
    scope,
    exec,
    ledger,
    recordEvent: recordPodEvent,
    podIps: async (pod, signal) => podIps(pod, await observer.inspect(uidOf(pod), signal)),
  });
  const killer = new ContainerKiller({
    runtime,
    clock,
    log,
    ledger,
    recordEvent: recordPodEvent,
    runPreStop: (pod, container, { id }, signal) => hooks.preStop({ pod, container, id }, signal),
  });
  const setup = new PodSetup({
    podsDir,
    ledger,
    recordEvent: recordPodEvent,
    volumes: parts.volumes,
    cgroups: parts.cgroups,
    removeFromRuntime: async (uid, signal) => {
      const observed = await observer.inspect(uid, signal);
      await Promise.all(observed.containers.map((container) => removal.remove(container, signal)));
      await Promise.all(
        observed.sandboxes.map(({ id: podSandboxId }) => runtime.removePodSandbox({ podSandboxId }, { signal })),
      );
      await removePodLogs(node.podLogsDir, (owner) => owner === uid, signal);
    },
    forget: (uid) => {
      memory.forget(uid);
      parts.onGone(uid);
    },
  });
  const sandboxContext = (pod: IdentifiedPod): SandboxContext => ({
    ...sandboxContextOf(node, runtimeStatus.handlers, parts.runtimeHandlerOf(pod)),
    volumeGroups: parts.volumes.groupsOf(uidOf(pod)),
  });
  const starter = new ContainerStarter({
    runtime,
    clock,
    log,
    ledger,
    recordEvent: recordPodEvent,
    recordNodeEvent: parts.recordNodeEvent,
    hashOf: containerHash,
    noteOwner: (id, uid) => observer.noteOwner(id, uid),
    sandboxContext: async (pod) => sandboxContext(pod),
    containerContext: async ({ pod, observed, image }) => ({
      ...sandboxContext(pod),
      image,
      podIps: podIps(pod, observed),
      volumes: parts.volumes.of(uidOf(pod)),
      services: parts.services(),
      readConfigMap: parts.readConfigMap,
      readSecret: parts.readSecret,
      readVolumeFile,
      placement: anywhere,
      devices: noDeviceGrants,
      subPaths: parts.volumes.subPaths,
      containerIdOf: (name) => newestOf(observed, name)?.id,
    }),
    ensureImage: parts.images.ensureImage,
    prefetchImage: parts.images.prefetchImage,
    runPostStart: async (pod, container, id, signal) => {
      const result = await hooks.postStart({ pod, container, id }, signal);
      return result.type === "failed" ? result.message : undefined;
    },
    killAfterFailedHook: async (pod, id, signal) => {
      const found = (await observer.inspect(uidOf(pod), signal)).containers.find((candidate) => candidate.id === id);
      if (found === undefined) return;
      const graceSeconds = pod.spec.terminationGracePeriodSeconds ?? 30;
      const message = "FailedPostStartHook";
      await killer.killContainer({ pod, container: found, graceSeconds, message, preStopDone: new Set() }, signal);
    },
    removeContainer: (container, signal) => removal.remove(container, signal),
    legacyLogs: logs,
  });
  const gc = new ContainerGc(
    {
      ...logs,
      minimumAgeMs: parts.settings.minimumContainerAgeMs,
      maxPerContainer: parts.settings.maxDeadPerContainer,
      maxInAll: parts.settings.maxDeadContainers,
    },
    {
      runtime,
      clock,
      log: log.named("gc"),
      recordNodeEvent: parts.recordNodeEvent,
      allSourcesReady: () => mux.allReady(),
      mayRemoveContent: (uid) => !workers.knows(uid) && registry.get(uid) === undefined,
      mayRemoveRuntime: (uid) => workers.stateOf(uid)?.step === "finished",
    },
    removal,
  );
  const collectSoon = keepCollecting("container garbage collection", gc, clock, scope);
  /** Reads the pod, and has instances that are no longer needed removed beside the work on it. */
  const inspect = async (uid: PodUid, signal: AbortSignal): Promise<ObservedPod> => {
    const observed = await observer.inspect(uid, signal);
    if (hasSpareRecords(observed)) scope.spawn(`prune ${uid}`, (pruning) => gc.pruneDead(observed, pruning));
    return observed;
  };
  const workers = new PodWorkers(scope, {
    clock,
    log: log.named("workers"),
    ledger,
    recordEvent: recordPodEvent,
    observer: { inspect, latest: (uid) => observer.latest(uid), forget: (uid) => observer.forget(uid) },
    statuses,
    starter,
    killer,
    setup,
    memory,
    hashOf: containerHash,
    node: () => ({ runtimeName: parts.runtimeName, hostIPs: parts.hostIPs }),
    terminationText: readTerminationText,
    networkProblem: () => runtimeStatus.networkProblem,
    isNameUnclaimed: (name) => relist.lastSuccessAt === undefined || registry.isUnclaimed(name),
    crashBackoff: parts.settings.crashBackoff,
    startSlots: parts.settings.startSlots,
    isListed: (uid) => registry.get(uid) !== undefined,
    probes: {
      ensure: (pod) => probes.ensure(pod),
      observe: (pod, observed) => {
        const containers = new Map(observed.containers.toReversed().map((container) => [container.name, container]));
        const podIp = podIps(pod, observed)[0];
        probes.observe(uidOf(pod), { containers, podIp, hostIp: parts.hostIPs[0] });
      },
      beginTermination: (uid) => probes.beginTermination(uid),
      remove: (uid) => probes.remove(uid),
      result: (uid, container, kind) => probes.result(uid, container.name, kind, container.id),
    },
  });
  probes.onChange((uid) => workers.wake(uid));
  const views = new PodViews({ statuses, ledger });
  const registry = new PodRegistry({
    announce: (pod) => views.wanted(pod),
    workers,
    admission: parts.admission,
    log: log.named("pods"),
    ledger,
    recordEvent: recordPodEvent,
    allSourcesReady: () => mux.allReady(),
    inspect: (uid, signal) => observer.inspect(uid, signal),
    setStatus: (pod, status) => statuses.set(pod, status),
    forget: (uid) => {
      statuses.delete(uid);
      views.gone(uid);
    },
  });
  noteMilestones(statuses, ledger);
  workers.onGone((uid) => {
    views.gone(uid);
    gc.noteChange();
    collectSoon();
  });
  const relist = new Relist({
    runtime,
    clock,
    log: log.named("relist"),
    observedPods: () => observer.all(),
    wake: (uid, fullName) => registry.runtimeChanged(uid, fullName),
    hintsFlow: () => parts.hints.source !== undefined && parts.hints.source !== "none",
    onListed: (isFirst) => {
      // Pods wait with their start until it is known whether an older version of them still runs.
      if (isFirst) workers.wakeAll();
      settler.wake("unclaimed");
    },
  });
  /** Beside all else: an unwanted pod that can't be inspected must hold up nobody. */
  const settler = new KeyedWorkers<"unclaimed">(scope, (_, signal) => registry.settleUndecided(signal));
  scope.spawn("runtime status", (signal) => runtimeStatus.run(signal));
  scope.spawn("relist", (signal) => relist.run(signal));
  scope.spawn("runtime hints", (signal) =>
    followHints(
      {
        clock,
        subscribe: (streamSignal) => parts.hints.subscribe(streamSignal),
        ownerOf: (id) => observer.ownerOf(id),
        latest: (uid) => observer.latest(uid),
        runtimeChanged: (uid) => registry.runtimeChanged(uid),
        somethingMissed: () => relist.hasten(),
      },
      signal,
    ),
  );
  scope.spawn("wanted pods", (signal) =>
    takeChanges(
      mux,
      registry,
      () => {
        log.info("All pod sources have spoken; pods that none of them wants may be stopped from now on");
        settler.wake("unclaimed");
      },
      signal,
    ),
  );
  const knownPods = async (signal: AbortSignal): Promise<ReadonlySet<PodUid> | undefined> => {
    if (!mux.allReady()) return undefined;
    const [{ items }, { containers }] = await Promise.all([
      runtime.listPodSandbox({ filter: undefined }, { signal }),
      runtime.listContainers({ filter: undefined }, { signal }),
    ]);
    return new Set([
      ...items.flatMap(({ metadata }) => (metadata === undefined ? [] : [metadata.uid as PodUid])),
      ...containers.flatMap(({ labels }) => (labels[runtimeLabels.podUid] as PodUid | undefined) ?? []),
      ...mux.pods().map(uidOf),
      ...workers.uids(),
    ]);
  };
  return { views, statuses, workers, runtimeStatus, ledger, observer, relist, knownPods };
}

/** Besides the newest instance of a name, which its status needs, and the one before, one more has ended. */
function hasSpareRecords({ containers }: ObservedPod): boolean {
  const ended = new Map<string, number>();
  for (const { name, state } of containers) if (state === "exited") ended.set(name, (ended.get(name) ?? 0) + 1);
  return [...ended.values()].some((count) => count > 1);
}

async function takeChanges(
  mux: PodMux,
  registry: PodRegistry,
  onReady: () => void,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const change = await mux.next(signal);
    const wasReady = mux.allReady();
    registry.apply(change);
    mux.acknowledge(change);
    if (!wasReady && mux.allReady()) onReady();
  }
}
