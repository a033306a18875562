import { containerHash, containersOf, type IdentifiedPod, type PodUid, uidOf } from "../../ground/model/index.ts";
import type { StartedPod } from "./started-pod.ts";

/** The API's pods as they were kept on disk. */
export interface OfflineList {
  /** Those that were to run, without their statuses. */
  readonly pods: readonly IdentifiedPod[];
  /** Those that had ended or were about to. */
  readonly ended: readonly string[];
  /** When the API server last confirmed it, on the machine's clock. */
  readonly confirmedAtMs: number;
  /** Of the Node that the pods were bound to; undefined: it was not known. */
  readonly nodeUid: string | undefined;
}

/** A DaemonSet may have been changed or removed since; what is older than a day is not started without the API. */
const oldestListMs = 24 * 3600 * 1000;
/** Clocks are set right after a boot; more than this into the future can't be told from a wrong clock. */
const mostAheadMs = 5 * 60 * 1000;

/**
 * What each pod of the list has to wait for while the API server can't be reached; a pod that is not in the result goes
 * on, or is started. The list never ends anything, and the rule for starting is narrow on purpose: whatever a controller
 * may have replaced on another node since (a StatefulSet's pod, a Deployment's, a bare one) waits for the API server.
 * What remains are pods that only this node can have: those of DaemonSets.
 */
export function offlineHolds(
  list: OfflineList,
  started: readonly StartedPod[],
  { nowMs, nodeUid }: { readonly nowMs: number; readonly nodeUid: string | undefined },
): ReadonlyMap<PodUid, string> {
  const isOfAnotherNode = list.nodeUid !== undefined && nodeUid !== undefined && list.nodeUid !== nodeUid;
  const distrust = isOfAnotherNode
    ? "the list on disk is of a Node of this name that was deleted since"
    : reasonToDistrust(list, started, nowMs);
  const holds = new Map<PodUid, string>();
  for (const pod of list.pods) {
    const live = started.filter(({ uid, isLive }) => isLive && uid === pod.metadata.uid);
    const reason = live.length > 0 ? misfitOf(pod, live) : reasonNotToStart(pod, distrust);
    if (reason !== undefined) holds.set(uidOf(pod), `the API server, which can't be reached: ${reason}`);
  }
  return holds;
}

function misfitOf(pod: IdentifiedPod, live: readonly StartedPod[]): string | undefined {
  const hashes = new Map(containersOf(pod).map(({ container }) => [container.name, containerHash(container)]));
  const fits = live.every(({ containerHashes }) =>
    [...containerHashes].every(([name, hash]) => hashes.get(name) === hash),
  );
  return fits ? undefined : "its containers run on, but were made from another version than the list on disk has";
}

function reasonNotToStart(pod: IdentifiedPod, distrust: string | undefined): string | undefined {
  if (!isOfDaemonSet(pod)) return "it does not run here, and may run elsewhere by now";
  return distrust;
}

function isOfDaemonSet({ metadata }: IdentifiedPod): boolean {
  return (metadata.ownerReferences ?? []).some(
    ({ controller, kind, apiVersion }) => controller === true && kind === "DaemonSet" && apiVersion.startsWith("apps/"),
  );
}

/** Why the list may not be the last word of the API server. */
function reasonToDistrust(list: OfflineList, started: readonly StartedPod[], nowMs: number): string | undefined {
  const ageMs = nowMs - list.confirmedAtMs;
  if (ageMs > oldestListMs) return `the list on disk is ${Math.round(ageMs / 3_600_000)} hours old`;
  if (ageMs < -mostAheadMs) return "the list on disk was written later than the machine's clock says it is";
  const known = new Set<string>([...list.pods.map(uidOf), ...list.ended]);
  const isUnknown = ({ uid, source, startedAtMs }: StartedPod): boolean =>
    source === "api" && startedAtMs > list.confirmedAtMs && !known.has(uid);
  return started.some(isUnknown) ? "pods were started here that the list on disk does not know" : undefined;
}
