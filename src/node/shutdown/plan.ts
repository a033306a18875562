import type { AgentConfig } from "../../ground/config/index.ts";
import type { IdentifiedPod } from "../../ground/model/index.ts";

/** Pods from this priority up have this long to end. */
export interface ShutdownGroup {
  readonly priority: number;
  readonly seconds: number;
}

export interface ShutdownBucket extends ShutdownGroup {
  readonly pods: readonly EndingPod[];
}

interface EndingPod {
  readonly pod: IdentifiedPod;
  readonly graceSeconds: number;
  /** It would have liked longer. */
  readonly isCutShort: boolean;
}

const criticalPriority = 2_000_000_000;

/** In the order in which they end; none: pods are not ended when the node is turned off. */
export function shutdownGroups({ kubelet, gates }: Pick<AgentConfig, "kubelet" | "gates">): readonly ShutdownGroup[] {
  if (!gates.enabled("GracefulNodeShutdown")) return [];
  const { shutdownGracePeriodByPodPriority: byPriority } = kubelet;
  if (gates.enabled("GracefulNodeShutdownBasedOnPodPriority") && byPriority.length > 0) {
    return byPriority
      .map(({ priority, shutdownGracePeriodSeconds: seconds }) => ({ priority, seconds }))
      .sort((a, b) => a.priority - b.priority);
  }
  const { shutdownGracePeriodMs: total, shutdownGracePeriodCriticalPodsMs: critical } = kubelet;
  if (total <= 0 || critical > total) return [];
  return [
    { priority: 0, seconds: Math.trunc((total - critical) / 1000) },
    { priority: criticalPriority, seconds: Math.trunc(critical / 1000) },
  ];
}

export function totalSeconds(groups: readonly ShutdownGroup[]): number {
  return groups.reduce((sum, { seconds }) => sum + seconds, 0);
}

/** Which pods end when, and how long each of them has. A group without pods takes no time. */
export function planShutdown(
  groups: readonly ShutdownGroup[],
  pods: readonly IdentifiedPod[],
): readonly ShutdownBucket[] {
  const members = groups.map((): IdentifiedPod[] => []);
  for (const pod of pods) members[groupOf(groups, pod.spec.priority ?? 0)]?.push(pod);
  return groups.map((group, index) => ({
    ...group,
    pods: (members[index] ?? []).map((pod) => endingPod(pod, group.seconds)),
  }));
}

/** The highest group whose priority the pod has; the lowest of all for one that has none. */
function groupOf(groups: readonly ShutdownGroup[], priority: number): number {
  return Math.max(
    0,
    groups.findLastIndex((group) => group.priority <= priority),
  );
}

function endingPod(pod: IdentifiedPod, seconds: number): EndingPod {
  const own = pod.spec.terminationGracePeriodSeconds ?? seconds;
  return { pod, graceSeconds: Math.min(own, seconds), isCutShort: own > seconds };
}
