import { isTerminalPhase, type Pod, type PodUid } from "../../ground/model/index.ts";
import type { LocalViews, ShownPull } from "./ports.ts";

/** A pod that is not where it should be, and what it waits for. */
export interface WaitingPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly phase: string;
  readonly waitingFor: {
    readonly reason: string;
    readonly message: string;
    /** Milliseconds since 1970. */
    readonly since: number;
    readonly nextTryAt?: number | undefined;
    /** How far the image is that it waits for. */
    readonly progress?: ShownPull["progress"];
  };
}

/** Everything on this node that waits, the longest first. */
export function waitingPods(
  views: Pick<LocalViews, "pods" | "ledger">,
  pulls: readonly ShownPull[],
): readonly WaitingPod[] {
  return views
    .pods()
    .flatMap((pod) => {
      const waitingFor = waitOf(pod, views);
      if (waitingFor === undefined) return [];
      const { namespace = "default", name = "", uid = "" } = pod.metadata ?? {};
      const progress = pulls.find((pull) => pull.progress !== undefined && pull.podUids.includes(uid))?.progress;
      const wait = progress === undefined ? waitingFor : { ...waitingFor, progress };
      return [{ namespace, name, uid, phase: pod.status?.phase ?? "Pending", waitingFor: wait }];
    })
    .sort((a, b) => a.waitingFor.since - b.waitingFor.since);
}

/** A named blocker, else work under way, else what the pod's own condition says. */
function waitOf(pod: Pod, views: Pick<LocalViews, "ledger">): WaitingPod["waitingFor"] | undefined {
  const ledger = views.ledger((pod.metadata?.uid ?? "") as PodUid);
  if (ledger?.blocker !== undefined) return ledger.blocker;
  const running = ledger?.entries.find(({ outcome }) => outcome === "running");
  if (running !== undefined) {
    const { step, subject, startedAt: since, message = "" } = running;
    return { reason: subject === "" ? step : `${step} ${subject}`, message, since };
  }
  if (isTerminalPhase(pod.status?.phase)) return undefined;
  const ready = pod.status?.conditions?.find(({ type }) => type === "Ready");
  if (ready === undefined || ready.status === "True") return undefined;
  const since = Date.parse(ready.lastTransitionTime ?? pod.metadata?.creationTimestamp ?? "");
  return {
    reason: ready.reason ?? "NotReady",
    message: ready.message ?? "",
    since: Number.isNaN(since) ? 0 : since,
  };
}
