import { join } from "node:path";
import type { RuntimeEvent, RuntimeService } from "../connections/cri/index.ts";
import type { Clock, Logger } from "../ground/base/index.ts";
import type { PodUid } from "../ground/model/index.ts";
import type { AgentMetrics } from "../node/metrics/index.ts";
import { arePodsKnown, podsInUse, WantedPods } from "../pod/registry/index.ts";
import { Actuations, Allocations } from "../pod/resources/index.ts";
import { PodObserver, Relist, RuntimeStatus } from "../pod/runtime/index.ts";
import type { PodMux } from "../pod/sources/index.ts";
import { StatusStore } from "../pod/status/index.ts";
import { WorkerTable } from "../pod/workers/index.ts";
import type { Wakes } from "./wakes.ts";

/** News of the runtime about its containers. */
export interface RuntimeEventStream {
  readonly source: string | undefined;
  subscribe(signal: AbortSignal): AsyncIterable<RuntimeEvent>;
}

/** What is known of pods: wanted, worked on, observed, reported. It acts on nothing, so it is there before all who do. */
export interface PodSight {
  readonly mux: PodMux;
  readonly wanted: WantedPods;
  readonly table: WorkerTable;
  readonly statuses: StatusStore;
  /** What pods were promised, and what their containers were given. */
  readonly allocations: Allocations;
  readonly actuations: Actuations;
  readonly observer: PodObserver;
  readonly relist: Relist;
  readonly runtimeStatus: RuntimeStatus;
  /** The runtime has said what it has. */
  isRuntimeKnown(): boolean;
  /** Every source has spoken, and no pod that runs here waits to be taken over. */
  arePodsKnown(): boolean;
  /** Somebody works on the pod, or the runtime has it. */
  isHere(uid: PodUid): boolean;
  /** Whether anything of the pod may use what it was given, or will. True while that can't be told. */
  holds(uid: PodUid): boolean;
  /** Every pod that is wanted, worked on or known to the runtime; undefined while not every source has spoken. */
  podsInUse(signal: AbortSignal): Promise<ReadonlySet<PodUid> | undefined>;
}

export function buildPodSight(parts: {
  readonly clock: Clock;
  readonly log: Logger;
  readonly runtime: RuntimeService;
  readonly runtimeEvents: RuntimeEventStream;
  readonly mux: PodMux;
  readonly metrics: AgentMetrics;
  readonly wakes: Wakes;
  readonly rootDir: string;
  readonly wasOomKilled: (id: string) => boolean;
}): PodSight {
  const { clock, log, runtime, runtimeEvents, mux, wakes } = parts;
  const wanted = new WantedPods();
  const actuations = new Actuations(join(parts.rootDir, "actuated_pods_state"), log);
  const table = new WorkerTable();
  const observer = new PodObserver({ runtime, clock, wasOomKilled: parts.wasOomKilled });
  const runtimeStatus = new RuntimeStatus({
    runtime,
    clock,
    log,
    onChange() {
      wakes.decisions.tell();
      wakes.allPods.tell();
      wakes.node.tell();
    },
  });
  const relist = new Relist({
    runtime,
    clock,
    log: log.named("relist"),
    observedPods: () => observer.all(),
    wake: wakes.runtimePod.tell,
    eventsFlow: () => runtimeEvents.source !== undefined && runtimeEvents.source !== "none",
    onListed: wakes.listed.tell,
    onDone: parts.metrics.runtime.onRelist,
  });
  const isRuntimeKnown = (): boolean => relist.lastSuccessAt !== undefined;
  const arePods = (): boolean => arePodsKnown(mux, wanted, isRuntimeKnown());
  return {
    mux,
    wanted,
    table,
    statuses: new StatusStore(log.named("status")),
    allocations: new Allocations(join(parts.rootDir, "allocated_pods_state"), actuations, log),
    actuations,
    observer,
    relist,
    runtimeStatus,
    isRuntimeKnown,
    arePodsKnown: arePods,
    isHere: (uid) => wanted.found.has(uid) || table.has(uid),
    holds(uid) {
      if (!arePods()) return true;
      const step = table.stateOf(uid)?.step;
      if (step !== undefined) return step === "running" || step === "terminating";
      // Those that were refused have nothing.
      return wanted.found.has(uid) || (wanted.has(uid) && !wanted.rejected.has(uid));
    },
    podsInUse: podsInUse({ sources: mux, table, runtime }),
  };
}
