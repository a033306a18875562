import { join } from "node:path";
import type { RuntimeService } from "../connections/cri/index.ts";
import { resources } from "../connections/kube/index.ts";
import type { Clock, Logger, TaskScope } from "../ground/base/index.ts";
import { fullName, type IdentifiedPod, isMirrorPod, isStaticPod, type PodUid, uidOf } from "../ground/model/index.ts";
import type { KnownNode, NodeKeeper } from "../node/object/index.ts";
import { isMirrorOf, MirrorPods } from "../pod/registry/index.ts";
import { ApiSource, OfflineFile, type PodMux } from "../pod/sources/index.ts";
import { StatusSender, type StatusStore } from "../pod/status/index.ts";
import type { PodWorkers } from "../pod/workers/index.ts";
import type { Cluster } from "./cluster.ts";
import { PatchAnswers } from "./patch-answers.ts";
import { listStartedPods } from "./started-pods.ts";

/** Pods from the API go into the stream of wanted pods. */
export function startApiSource(
  parts: {
    readonly cluster: Cluster;
    readonly known: Pick<KnownNode, "knowledge" | "whenKnown" | "onChange">;
    readonly nodeName: string;
    readonly rootDir: string;
    readonly runtime: RuntimeService;
    readonly clock: Clock;
    readonly log: Logger;
  },
  mux: PodMux,
  scope: TaskScope,
): void {
  const { cluster, clock, nodeName, known } = parts;
  const log = parts.log.named("sources");
  const nodeUid = (): string | undefined => known.knowledge?.node.metadata?.uid;
  const offline = new OfflineFile(
    join(parts.rootDir, "nodelet", "api-pods.json"),
    { nodeName, server: cluster.clients.server },
    {
      clock,
      log,
      nodeUid,
      heardAt: () => cluster.pods.heardAt,
      pods: () => (cluster.pods.hasSynced ? cluster.pods.list() : undefined),
    },
  );
  const source = new ApiSource({
    clock,
    log,
    offline,
    hasSynced: () => cluster.pods.hasSynced,
    pods: () => cluster.pods.list(),
    startedPods: (signal) => listStartedPods(parts.runtime, signal),
    nodeUid: async (signal) => (await known.whenKnown(signal)).node.metadata?.uid,
    deliver: (pods, provisional, signal) => mux.set("api", pods, signal, provisional),
    deliverChange: (change, signal) => mux.change("api", change, signal),
  });
  cluster.pods.onChange((change) => source.changed(change));
  cluster.pods.onListed(() => source.listed());
  let lastUid = nodeUid();
  known.onChange(() => {
    // The list on disk names the Node that it is of.
    if (nodeUid() !== lastUid) offline.changed();
    lastUid = nodeUid();
  });
  scope.spawn("the API's pods", (signal) => source.run(signal));
  scope.spawn("the API's pods on disk", (signal) => offline.run(signal));
}

const requestsAtOnce = 8;

/** Statuses go to the API, and static pods get their mirrors there. */
export function reportToApi(
  parts: {
    readonly cluster: Cluster;
    readonly node: Pick<NodeKeeper, "node" | "onNode">;
    readonly clock: Clock;
    readonly log: Logger;
    readonly statuses: StatusStore;
    readonly workers: PodWorkers;
    readonly onSynced: (durationMs: number) => void;
    /** The pods that are wanted, of all sources, mirrors too. */
    readonly wanted: () => readonly IdentifiedPod[];
  },
  scope: TaskScope,
): void {
  const { cluster, clock, statuses, workers } = parts;
  const log = parts.log.named("status");
  const api = cluster.clients.main;
  const answers = new PatchAnswers();
  const apiPods = (): readonly IdentifiedPod[] => cluster.pods.list();
  const mirrorOf = (name: string): IdentifiedPod | undefined =>
    apiPods().find((pod) => isMirrorPod(pod) && fullName(pod) === name);
  const staticPod = (name: string): IdentifiedPod | undefined =>
    parts.wanted().find((pod) => isStaticPod(pod) && fullName(pod) === name);
  const apiPodOf = (uid: PodUid): IdentifiedPod | undefined => {
    const own = apiPods().find((pod) => pod.metadata.uid === uid);
    if (own !== undefined) return answers.newest(own);
    // One that nobody wants any more is shown by its mirror until it has stopped.
    const known = [...parts.wanted(), ...workers.pods()].find((pod) => uidOf(pod) === uid);
    if (known === undefined || !isStaticPod(known)) return undefined;
    const mirror = mirrorOf(fullName(known));
    return mirror !== undefined && isMirrorOf(mirror, known) ? answers.newest(mirror) : undefined;
  };
  const sender = new StatusSender(scope, {
    clock,
    log,
    atOnce: requestsAtOnce,
    apiPod: apiPodOf,
    status: (uid) => statuses.get(uid),
    patchStatus: async (pod, body, signal) => {
      const { namespace, name } = pod.metadata;
      const ref = { namespace, name, subresource: "status" };
      return (await api.patch(resources.pods, ref, { type: "strategic", body }, signal)) as IdentifiedPod;
    },
    onSynced: parts.onSynced,
    onSent: (pod) => {
      const { namespace, name, uid } = pod.metadata;
      // An answer that comes after the news of the pod's end would never be let go of.
      if (cluster.pods.get(namespace, name)?.metadata.uid === uid) answers.set(pod);
    },
    mayDelete: (uid, pod) => {
      const { phase } = pod.status ?? {};
      const isOver = phase === "Succeeded" || phase === "Failed";
      const step = workers.stateOf(uid)?.step;
      const isDone = step === undefined || step === "finished";
      return pod.metadata.deletionTimestamp !== undefined && !isMirrorPod(pod) && isOver && isDone;
    },
    deletePod: (pod, signal) => remove(cluster, pod, signal),
  });
  const mirrors = new MirrorPods(scope, {
    clock,
    log: log.named("mirrors"),
    staticPod,
    isTerminating: (name, wanted) => workers.isLeaving(name, wanted && uidOf(wanted)),
    mirrorPod: mirrorOf,
    node: () => parts.node.node,
    create: async (pod, signal) => {
      await api.create(resources.pods, { namespace: pod.metadata?.namespace }, pod, signal);
    },
    delete: (pod, signal) => remove(cluster, pod, signal),
  });
  const wakeMirrors = (): void => {
    for (const pod of parts.wanted()) if (isStaticPod(pod)) mirrors.wake(fullName(pod));
  };
  statuses.onChange((pod) => {
    sender.wake(uidOf(pod));
    if (isStaticPod(pod)) mirrors.wake(fullName(pod));
  });
  workers.onFinished((uid) => sender.wake(uid));
  workers.onGone((uid) => {
    sender.forget(uid);
    for (const pod of apiPods()) if (isMirrorPod(pod)) mirrors.wake(fullName(pod));
    wakeMirrors();
  });
  cluster.pods.onChange((change) => {
    const { object } = change;
    if (change.type === "deleted") answers.delete(object.metadata.uid);
    if (isMirrorPod(object)) {
      mirrors.wake(fullName(object));
      for (const pod of [...parts.wanted(), ...workers.pods()]) {
        if (isStaticPod(pod) && fullName(pod) === fullName(object)) sender.wake(uidOf(pod));
      }
    } else sender.wake(uidOf(object));
  });
  cluster.pods.onListed(() => {
    answers.clear();
    for (const pod of apiPods()) if (!isMirrorPod(pod)) sender.wake(uidOf(pod));
    wakeMirrors();
  });
  parts.node.onNode(wakeMirrors);
}

async function remove(cluster: Cluster, pod: IdentifiedPod, signal: AbortSignal): Promise<void> {
  const { namespace, name, uid } = pod.metadata;
  const options = { gracePeriodSeconds: 0, preconditions: { uid } };
  await cluster.clients.main.delete(resources.pods, { namespace, name }, options, signal);
}
