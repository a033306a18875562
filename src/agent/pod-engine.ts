import { KeyedWorkers, type Ledger, type TaskScope } from "../ground/base/index.ts";
import {
  containerHash,
  type IdentifiedPod,
  type ObservedPod,
  type PodUid,
  qosClassOf,
  uidOf,
} from "../ground/model/index.ts";
import { PodRegistry } from "../pod/registry/index.ts";
import {
  ContainerGc,
  followHints,
  type PodObserver,
  Relist,
  type RuntimeStatus,
  runtimeLabels,
} from "../pod/runtime/index.ts";
import type { PodMux } from "../pod/sources/index.ts";
import { readTerminationText, StatusStore, TerminationTexts } from "../pod/status/index.ts";
import { PodWorkers } from "../pod/workers/index.ts";
import { keepCollecting } from "./garbage.ts";
import { noteMilestones } from "./ledger-notes.ts";
import { showNodeState } from "./metrics/index.ts";
import { buildPodActions } from "./pod-actions.ts";
import type { PodEngineParts } from "./pod-engine-parts.ts";
import { PodViews } from "./pod-views.ts";
import { preempter } from "./preempt.ts";

/** The pod engine: from the stream of wanted pods to running containers, and their statuses. */
export interface PodEngine {
  readonly views: PodViews;
  readonly statuses: StatusStore;
  readonly workers: PodWorkers;
  readonly runtimeStatus: RuntimeStatus;
  readonly ledger: Ledger<PodUid>;
  readonly observer: PodObserver;
  readonly relist: Relist;
  /** Pods whose containers are wanted or still run; others have given back what they were promised. */
  activePods(): readonly IdentifiedPod[];
  /** Whether those are all: every source has spoken, and no pod that runs here waits to be taken over. */
  arePodsKnown(): boolean;
  /** Every pod that is wanted, worked on or known to the runtime; undefined while not every source has spoken. */
  knownPods(signal: AbortSignal): Promise<ReadonlySet<PodUid> | undefined>;
  /** What pods are judged by has become known, or has changed. */
  reconsider(): void;
}

export function startPodEngine(parts: PodEngineParts, scope: TaskScope): PodEngine {
  const { clock, log, ledger, runtime, node, mux, recordPodEvent, metrics } = parts;
  const logs = { podLogsDir: node.podLogsDir, legacyDir: parts.legacyLogDir, log };
  const statuses = new StatusStore(log.named("status"));
  const onRuntimeChange = (): void => {
    reconsider();
    workers.wakeAll();
    parts.onRuntimeChange();
  };
  const actions = buildPodActions({ ...parts, onRuntimeChange }, scope);
  const { observer, checkpoints, runtimeStatus, probes, killer, setup, starter, removal } = actions;
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
    observer: {
      inspect,
      latest: (uid) => observer.latest(uid),
      doubt: (uid) => observer.doubt(uid),
      forget: (uid) => observer.forget(uid),
    },
    statuses,
    starter,
    killer,
    setup,
    checkpoints,
    hashOf: containerHash,
    node: () => ({ runtimeName: parts.runtimeName, hostIPs: parts.hostIPs() }),
    terminationTexts: new TerminationTexts({
      clock,
      read: readTerminationText,
      onLate: (uid) => workers.wake(uid),
    }),
    networkProblem: () => runtimeStatus.networkProblem,
    isNameUnclaimed: (name) => relist.lastSuccessAt === undefined || registry.isUnclaimed(name),
    crashBackoff: parts.settings.crashBackoff,
    startSlots: parts.settings.startSlots,
    isListed: (uid) => registry.get(uid) !== undefined,
    probes: actions.probesPort,
    metrics: metrics.pods,
  });
  probes.onChange((uid) => workers.wake(uid));
  const views = new PodViews({ statuses, ledger, wanted: () => mux.pods() });
  const registry = new PodRegistry({
    announce: (pod) => views.wanted(pod),
    workers,
    admission: parts.admission,
    log: log.named("pods"),
    ledger,
    recordEvent: recordPodEvent,
    clock,
    isRuntimeKnown: () => relist.lastSuccessAt !== undefined,
    mayStop: ({ sandboxes }) => mux.allReady() || isRefusedStaticPod(sandboxes[0]?.podSource, mux),
    wasHere: (uid) => checkpoints.load(uid).status !== undefined,
    preempt: preempter({
      workers,
      recordEvent: recordPodEvent,
      clock,
      log: log.named("pods"),
      scope,
      onPreempted: (resource) => metrics.pods.preempted(resource),
    }),
    inspect: (uid, signal) => observer.inspect(uid, signal),
    setStatus: (pod, status) => {
      metrics.pods.rejected(status.reason ?? "");
      const { generation: observedGeneration } = pod.metadata;
      const startTime = new Date(clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
      statuses.set(pod, {
        ...(observedGeneration === undefined ? {} : { observedGeneration }),
        ...status,
        startTime,
        qosClass: qosClassOf(pod),
      });
    },
    forget: (uid) => {
      statuses.delete(uid);
      views.gone(uid);
      ledger.forget(uid);
    },
  });
  statuses.onChange((pod, status, before) => {
    metrics.pods.onStatus(pod, status, before, ledger.read(uidOf(pod)), clock.now());
  });
  noteMilestones(statuses, ledger);
  workers.onGone((uid) => {
    views.gone(uid);
    metrics.probes.forget(uid);
    gc.noteChange();
    collectSoon();
  });
  const arePodsKnown = (): boolean => mux.allReady() && registry.hasTakenAllOver();
  let wereKnown = false;
  const noteKnown = (): void => {
    const areKnown = arePodsKnown();
    if (areKnown && !wereKnown) parts.onPodsKnown();
    wereKnown = areKnown;
  };
  const reconsider = (): void => {
    registry.reconsider();
    noteKnown();
  };
  const relist = new Relist({
    runtime,
    clock,
    log: log.named("relist"),
    observedPods: () => observer.all(),
    wake: (uid, fullName) => registry.runtimeChanged(uid, fullName),
    hintsFlow: () => parts.hints.source !== undefined && parts.hints.source !== "none",
    onListed: (isFirst) => {
      // Pods wait with their start until it is known whether they, or an older version of them, still run.
      if (isFirst) {
        reconsider();
        workers.wakeAll();
      }
      stopOrphans();
    },
    onDone: metrics.runtime.onRelist,
  });
  /** Each by itself: an unwanted pod that can't be inspected must hold up nobody. */
  const orphans = new KeyedWorkers<PodUid>(scope, (uid, signal) => registry.stopIfOrphaned(uid, signal));
  const stopOrphans = (): void => {
    for (const uid of registry.unclaimed()) orphans.wake(uid);
  };
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
  scope.spawn("wanted pods", async (signal) => {
    for (;;) {
      const change = await mux.next(signal);
      const wasReady = mux.isReady(change.source);
      registry.apply(change);
      mux.acknowledge(change);
      noteKnown();
      if (wasReady || !mux.isReady(change.source)) continue;
      if (mux.allReady()) {
        log.info("All pod sources have spoken; pods that none of them wants may be stopped from now on");
      }
      stopOrphans();
    }
  });
  showNodeState(metrics.figures.main, {
    wanted: () => mux.pods(),
    worked: () => workers.pods(),
    workedUids: () => workers.uids(),
    stateOf: (uid) => workers.stateOf(uid),
    observed: () => observer.all(),
  });
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
  const activePods = (): readonly IdentifiedPod[] =>
    workers.pods().filter((pod) => {
      const step = workers.stateOf(uidOf(pod))?.step;
      return step === "running" || step === "terminating";
    });
  return {
    views,
    statuses,
    workers,
    runtimeStatus,
    ledger,
    observer,
    relist,
    activePods,
    arePodsKnown,
    knownPods,
    reconsider,
  };
}

/** Besides the newest instance of a name, which its status needs, and the one before, one more has ended. */
function hasSpareRecords({ containers }: ObservedPod): boolean {
  const ended = new Map<string, number>();
  for (const { name, state } of containers) if (state === "exited") ended.set(name, (ended.get(name) ?? 0) + 1);
  return [...ended.values()].some((count) => count > 1);
}

/** A pod from a manifest can be wanted by the source of its manifests alone, whatever the others have yet to say. */
function isRefusedStaticPod(source: string | undefined, mux: PodMux): boolean {
  return (source === "file" || source === "http") && mux.isReady(source);
}
