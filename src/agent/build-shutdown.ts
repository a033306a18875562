import { join } from "node:path";
import { readBootTime } from "../connections/host/index.ts";
import type { Recorders } from "../connections/kube/index.ts";
import type { TaskScope } from "../ground/base/index.ts";
import { isStaticPod, ownGraceSeconds, type PodUid, uidOf } from "../ground/model/index.ts";
import { ShutdownMetrics } from "../node/metrics/index.ts";
import {
  GracefulShutdown,
  type ShutdownProgress,
  type ShutdownReport,
  ShutdownStateFile,
  shutdownGroups,
} from "../node/shutdown/index.ts";
import type { PodWorkers } from "../pod/workers/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

/** Ends the pods in good time when the machine is turned off. */
export interface ShutdownParts {
  readonly progress: ShutdownProgress;
  /** Resolves when it is known whether the machine is being turned off right now. */
  start(scope: TaskScope): Promise<void>;
  /** What would happen now; undefined: the node is configured to let it happen. */
  report(): ShutdownReport | undefined;
}

export function buildShutdown(
  base: Foundation,
  parts: {
    readonly progress: ShutdownProgress;
    readonly sight: PodSight;
    readonly workers: PodWorkers;
    readonly events: Recorders;
    readonly cluster: Cluster | undefined;
    readonly isReported: ((uid: PodUid) => boolean) | undefined;
  },
): ShutdownParts {
  const { config, clock, host, rootDir, process, metrics } = base;
  const { progress, sight, workers, events, cluster } = parts;
  const groups = shutdownGroups(config);
  const hasMetrics = config.gates.enabled("GracefulNodeShutdownBasedOnPodPriority");
  const shown = hasMetrics ? new ShutdownMetrics(metrics.figures.main) : undefined;
  if (groups.length === 0) return { progress, start: async () => {}, report: () => undefined };
  const logind = host.logind(process.environment["DBUS_SYSTEM_BUS_ADDRESS"]);
  const shutdown = new GracefulShutdown(groups, {
    clock,
    log: base.log.named("shutdown"),
    progress,
    state: new ShutdownStateFile(join(rootDir, "graceful_node_shutdown_state"), {
      id: host.facts.machine.bootId,
      at: readBootTime(),
    }),
    logindAbsence: () => logind.absence(),
    openLogind: (signal) => logind.open(clock, signal),
    recordNodeEvent: events.node,
    recordPodEvent: events.pod,
    arePodsKnown: () => sight.arePodsKnown(),
    activePods: () => sight.table.activePods(),
    terminate: (uid, request) => workers.terminate(uid, request),
    stepOf: (uid) => sight.table.stateOf(uid)?.step,
    isReported: parts.isReported ?? (() => true),
    isNodeReported: () => cluster?.own.isReady !== true,
    // One whose manifest was taken away or changed meanwhile is not wanted any more.
    mayComeBack: (pod) => isStaticPod(pod) && sight.wanted.has(uidOf(pod)),
    bringBack(pod) {
      // As if its manifest had been taken away and put back: one that has ended does not start again by itself.
      workers.terminate(uidOf(pod), { cause: "deleted", graceSeconds: ownGraceSeconds(pod) });
      workers.upsert(pod);
    },
    onState: (state) => shown?.show(state),
  });
  return { progress, start: (scope) => shutdown.start(scope), report: () => shutdown.report() };
}
