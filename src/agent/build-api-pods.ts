import { join } from "node:path";
import { type TaskScope, whenDifferent } from "../ground/base/index.ts";
import {
  configSourceAnnotation,
  fullName,
  isMirrorPod,
  isStaticPod,
  type PodUid,
  uidOf,
} from "../ground/model/index.ts";
import { followMirrors, isMirrorOf, MirrorPods } from "../pod/registry/index.ts";
import { ApiSource, listStartedPods, OfflineFile } from "../pod/sources/index.ts";
import { ApiReports } from "../pod/status/index.ts";
import type { PodWorkers } from "../pod/workers/index.ts";
import type { Cluster } from "./build-cluster.ts";
import type { PodSight } from "./build-pod-sight.ts";
import type { Foundation } from "./foundation.ts";

/** Pods come from the API, their statuses go there, and static pods get their mirrors. */
export interface ApiPodParts {
  start(scope: TaskScope): void;
  /** The API server has the pod's present status, or has nothing to show it by. */
  isReported(uid: PodUid): boolean;
}

export function buildApiPods(
  base: Foundation,
  parts: { readonly cluster: Cluster; readonly sight: PodSight; readonly workers: PodWorkers },
): ApiPodParts {
  const { clock, metrics, scope } = base;
  const { cluster, sight, workers } = parts;
  const { mux, statuses } = sight;
  const source = buildApiSource(base, cluster, sight);
  const log = base.log.named("status");
  const reports = new ApiReports(scope, {
    clock,
    log,
    client: cluster.clients.main,
    apiPods: cluster.pods,
    statuses,
    workers,
    wanted: () => mux.pods(),
    onLeft: (listener) => base.wakes.left.on(listener),
    isMirrorOf,
    onSynced: metrics.pods.onStatusSynced,
  });
  const mirrors = buildMirrors(base, parts);
  return {
    isReported: (uid) => reports.isReported(uid),
    start(running) {
      source.start(running);
      reports.follow();
      followMirrors(mirrors, {
        statuses,
        onLeft: (listener) => base.wakes.left.on(listener),
        wanted: () => mux.pods(),
        apiPods: cluster.pods,
        onNode: (listener) => cluster.own.onNode(listener),
      });
    },
  };
}

/** Pods from the API go into the stream of wanted pods. */
function buildApiSource(
  base: Foundation,
  cluster: Cluster,
  { mux }: PodSight,
): { readonly start: (scope: TaskScope) => void } {
  const { clock, rootDir, config, cri } = base;
  const { known, pods } = cluster;
  const log = base.log.named("sources");
  const nodeUid = (): string | undefined => known.knowledge?.node.metadata?.uid;
  const owner = {
    nodeName: config.nodeName,
    get server() {
      return cluster.clients.server;
    },
  };
  const offline = new OfflineFile(join(rootDir, "nodelet", "api-pods.json"), owner, {
    clock,
    log,
    nodeUid,
    heardAt: () => pods.heardAt,
    pods: () => (pods.hasSynced ? pods.list() : undefined),
  });
  const source = new ApiSource({
    clock,
    log,
    offline,
    hasSynced: () => pods.hasSynced,
    pods: () => pods.list(),
    startedPods: (signal) => listStartedPods(cri.runtime, signal),
    nodeUid: async (signal) => (await known.whenKnown(signal)).node.metadata?.uid,
    wanted: mux,
  });
  pods.onChange(source.changed);
  pods.onListed(source.listed);
  // The list on disk names the Node that it is of.
  known.onChange(whenDifferent(nodeUid, () => offline.changed()));
  return {
    start(scope) {
      scope.spawn("the API's pods", (signal) => source.run(signal));
      scope.spawn("the API's pods on disk", (signal) => offline.run(signal));
    },
  };
}

function buildMirrors(
  base: Foundation,
  { cluster, sight, workers }: { readonly cluster: Cluster; readonly sight: PodSight; readonly workers: PodWorkers },
): MirrorPods {
  return new MirrorPods(base.scope, {
    clock: base.clock,
    log: base.log.named("status").named("mirrors"),
    staticPod: (name) => sight.mux.pods().find((pod) => isStaticPod(pod) && fullName(pod) === name),
    isTerminating: (name, wanted) => workers.isLeaving(name, wanted && uidOf(wanted)),
    mirrorPod: (name) => cluster.pods.list().find((pod) => isMirrorPod(pod) && fullName(pod) === name),
    isSourceKnown: ({ metadata }) => sight.mux.allReadyFor(metadata.annotations?.[configSourceAnnotation]),
    node: () => cluster.own.node,
    client: cluster.clients.main,
  });
}
