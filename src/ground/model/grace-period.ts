import type { Pod } from "./kube/gen/types.ts";

export const defaultGraceSeconds = 30;

/** How long the pod's containers may take to end, by its own word. */
export function ownGraceSeconds({ spec }: Pod): number {
  return spec?.terminationGracePeriodSeconds ?? defaultGraceSeconds;
}

/** The same, once whoever deleted the pod has had a say. */
export function graceSecondsOf(pod: Pod): number {
  return pod.metadata?.deletionGracePeriodSeconds ?? ownGraceSeconds(pod);
}
