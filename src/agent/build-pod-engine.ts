import { CollectorLoop, type TaskScope } from "../ground/base/index.ts";
import { containerHash, type PodUid, uidOf } from "../ground/model/index.ts";
import { showNodeState } from "../node/metrics/index.ts";
import type { Probes } from "../pod/probes/index.ts";
import { OrphanedPods, PodIntake, PodRegistry, preempter } from "../pod/registry/index.ts";
import { type ContainerGc, followRuntimeEvents, PruningObserver } from "../pod/runtime/index.ts";
import {
  noteMilestones,
  PodViews,
  readTerminationText,
  rejectedStatus,
  TerminationTexts,
} from "../pod/status/index.ts";
import { PodWorkers, type WorkerMetrics } from "../pod/workers/index.ts";
import { buildPodActions, type PodActions } from "./build-pod-actions.ts";
import type { PodEngineParts } from "./pod-engine-parts.ts";

/** The pod engine: from the stream of wanted pods to running containers, and their statuses. */
export interface PodEngine {
  readonly views: PodViews;
  readonly workers: PodWorkers;
  readonly gc: ContainerGc;
  readonly probes: Pick<Probes, "shown">;
  /** What would be decided about a pod that comes now. */
  readonly foresee: PodRegistry["foresee"];
  start(scope: TaskScope): void;
}

export function buildPodEngine(parts: PodEngineParts): PodEngine {
  const { log, ledger, metrics, sight, wakes, clock } = parts;
  const { mux, statuses, table, observer, relist, runtimeStatus } = sight;
  const actions = buildPodActions(parts);
  const workers = buildWorkers(parts, actions);
  const views = new PodViews({ statuses, ledger, wanted: () => mux.pods() });
  const registry = buildRegistry(parts, { actions, workers, views });
  const orphans = buildOrphanedPods(parts, workers);
  const intake = new PodIntake({
    changes: mux,
    registry,
    orphans,
    wanted: sight.wanted,
    isRuntimeKnown: sight.isRuntimeKnown,
    log,
    onPodsKnown: () => {
      const isKnown = (uid: PodUid): boolean => sight.wanted.has(uid) || table.has(uid);
      sight.allocations.retain(isKnown);
      sight.actuations.retain(isKnown);
      registry.podsKnown();
      parts.placement.sweep();
      parts.onPodsKnown();
    },
  });
  const collecting = new CollectorLoop(actions.gc, clock);
  listen(parts, { workers, registry, orphans, intake, actions });
  statuses.onChange((pod, status, before) => {
    metrics.pods.onStatus(pod, status, before, ledger.read(uidOf(pod)), clock.now());
  });
  noteMilestones(statuses, ledger);
  workers.onGone(wakes.left.tell);
  wakes.left.on((uid) => {
    views.gone(uid);
    metrics.probes.forget(uid);
    metrics.resizes.forget(uid);
    actions.gc.noteChange();
    collecting.soon();
  });
  showNodeState(metrics.figures.main, {
    wanted: () => mux.pods(),
    worked: () => table.pods(),
    workedUids: () => table.keys(),
    stateOf: (uid) => table.stateOf(uid),
    observed: () => observer.all(),
    resizes: () => sight.wanted.resizes.values(),
  });
  const runtimeEvents: Parameters<typeof followRuntimeEvents>[0] = {
    clock,
    subscribe: (signal) => parts.runtimeEvents.subscribe(signal),
    ownerOf: (id) => observer.ownerOf(id),
    latest: (uid) => observer.latest(uid),
    runtimeChanged: (uid) => wakes.runtimePod.tell(uid, undefined),
    somethingMissed: () => relist.hasten(),
    onOom: parts.onOom,
  };
  return {
    views,
    workers,
    gc: actions.gc,
    probes: actions.probes,
    foresee: (pod, replaced, admission) => registry.foresee(pod, replaced, admission),
    start(running) {
      running.spawn("container garbage collection", (signal) => collecting.run(signal));
      running.spawn("runtime status", (signal) => runtimeStatus.run(signal));
      running.spawn("relist", (signal) => relist.run(signal));
      running.spawn("runtime events", (signal) => followRuntimeEvents(runtimeEvents, signal));
      running.spawn("wanted pods", async (signal) => {
        // Nobody is decided about before it is known what was promised.
        await sight.allocations.load();
        await sight.actuations.load();
        await intake.run(signal);
      });
    },
  };
}

/** Who has to act on news listens to them. */
function listen(
  { wakes, sight, placement }: PodEngineParts,
  {
    workers,
    registry,
    orphans,
    intake,
    actions,
  }: {
    workers: PodWorkers;
    registry: PodRegistry;
    orphans: OrphanedPods;
    intake: PodIntake;
    actions: PodActions;
  },
): void {
  wakes.pod.on((uid) => workers.wake(uid));
  wakes.startable.on((uid) => workers.startNow(uid));
  workers.onFinished(() => {
    placement.sweep();
    registry.roomMade();
  });
  wakes.left.on((uid) => {
    sight.allocations.forget(uid);
    sight.actuations.forget(uid);
    placement.sweep();
    registry.roomMade();
  });
  wakes.allPods.on(() => workers.wakeAll());
  actions.probes.onChange(wakes.pod.tell);
  wakes.decisions.on(() => intake.reconsider());
  wakes.runtimePod.on((uid, fullName) => registry.runtimeChanged(uid, fullName));
  wakes.listed.on((isFirst) => {
    // Pods wait with their start until it is known whether they, or an older version of them, still run.
    if (isFirst) {
      intake.reconsider();
      workers.wakeAll();
    }
    orphans.stopAll();
  });
}

function buildWorkers(parts: PodEngineParts, actions: PodActions): PodWorkers {
  const { clock, log, ledger, recordPodEvent, settings, sight, scope, wakes, metrics } = parts;
  const { table, observer, statuses, runtimeStatus, wanted } = sight;
  return new PodWorkers(scope, {
    table,
    clock,
    log: log.named("workers"),
    ledger,
    recordEvent: recordPodEvent,
    observer: new PruningObserver(observer, actions.gc, scope),
    statuses,
    starter: actions.starter,
    killer: actions.killer,
    setup: actions.setup,
    resize: actions.resizer,
    deviceHealth: parts.deviceHealth,
    checkpoints: actions.checkpoints,
    hashOf: containerHash,
    node: () => ({ runtimeName: parts.runtimeName(), hostIPs: parts.hostIPs() }),
    terminationTexts: new TerminationTexts({ clock, read: readTerminationText, onLate: wakes.pod.tell }),
    networkProblem: () => runtimeStatus.networkProblem,
    isNameUnclaimed: (name) => !sight.isRuntimeKnown() || wanted.isUnclaimed(name),
    crashBackoff: settings.crashBackoff,
    churn: parts.churn,
    isListed: (uid) => wanted.has(uid),
    probes: actions.podProbes,
    metrics: workerMetrics(metrics),
    ...(parts.tracer !== undefined && { tracer: parts.tracer }),
  });
}

function workerMetrics({ pods, resizes }: PodEngineParts["metrics"]): WorkerMetrics {
  return {
    began: (pod, waitedMs) => pods.began(pod, waitedMs),
    synced: (operation, durationMs) => pods.synced(operation, durationMs),
    orphaned: () => pods.orphaned(),
    restarted: (pod) => pods.restarted(pod),
    resizing: (uid, isUnderWay) => resizes.onProgress(uid, isUnderWay),
    resized: (isDone, durationMs) => resizes.onTried(isDone, durationMs),
  };
}

function buildOrphanedPods({ log, scope, sight }: PodEngineParts, workers: PodWorkers): OrphanedPods {
  const { mux, observer, wanted } = sight;
  return new OrphanedPods(scope, {
    wanted,
    workers,
    inspect: (uid, signal) => observer.inspect(uid, signal),
    mayStop: ({ sandboxes }) => mux.allReadyFor(sandboxes[0]?.podSource),
    log: log.named("pods"),
  });
}

function buildRegistry(
  parts: PodEngineParts,
  { actions, workers, views }: { actions: PodActions; workers: PodWorkers; views: PodViews },
): PodRegistry {
  const { clock, ledger, recordPodEvent, sight, scope, metrics, wakes } = parts;
  const { wanted, statuses } = sight;
  const log = parts.log.named("pods");
  return new PodRegistry({
    wanted,
    announce: (pod) => views.wanted(pod),
    workers,
    admission: parts.admission,
    allocations: sight.allocations,
    believeGiven: (pod) => sight.actuations.believe(pod),
    resizeSettings: parts.resizeSettings,
    resizeMetrics: metrics.resizes,
    log,
    ledger,
    recordEvent: recordPodEvent,
    clock,
    isRuntimeKnown: sight.isRuntimeKnown,
    arePodsKnown: sight.arePodsKnown,
    wasHere: (uid) => actions.checkpoints.mayKnow(uid),
    preempt: preempter({
      workers,
      recordEvent: recordPodEvent,
      clock,
      log,
      scope,
      onPreempted: (resource) => metrics.pods.preempted(resource),
    }),
    keepPlace: (pod) => parts.placement.takeOver(pod),
    setStatus: (pod, status) => {
      metrics.pods.rejected(status.reason ?? "");
      statuses.set(pod, rejectedStatus(pod, status, clock.now()));
    },
    forget: (uid) => {
      statuses.delete(uid);
      ledger.forget(uid);
      wakes.left.tell(uid);
    },
  });
}
