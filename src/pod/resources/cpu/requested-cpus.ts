import {
  amountIn,
  type Container,
  type IdentifiedPod,
  isSidecar,
  podLevelAmounts,
  qosClassOf,
} from "../../../ground/model/index.ts";

const nanosPerCpu = 1_000_000_000n;

/** How many CPUs the container is to have for itself alone; 0: it shares the others. */
export function exclusiveCpusOf(pod: IdentifiedPod, container: Container): number {
  if (!mayBePinned(pod)) return 0;
  const request = amountIn(container.resources, "requests", "cpu") ?? 0n;
  return request > 0n && request % nanosPerCpu === 0n ? Number(request / nanosPerCpu) : 0;
}

/** Whether CPUs or memory may be set apart for the pod: those with limits of their own as a whole have them in common. */
export function mayBePinned(pod: IdentifiedPod): boolean {
  if (qosClassOf(pod) !== "Guaranteed") return false;
  return podLevelAmounts(pod.spec, "requests").size + podLevelAmounts(pod.spec, "limits").size === 0;
}

/** How many CPUs the containers of a pod have for themselves at the most at one time. */
export function exclusiveCpusOfPod(pod: IdentifiedPod): number {
  return peakOf(pod, (container) => exclusiveCpusOf(pod, container));
}

/** The most that is used at once: all that run on together, or an init container beside the sidecars before it. */
export function peakOf({ spec }: IdentifiedPod, amountOf: (container: Container) => number): number {
  let sidecars = 0;
  let initialising = 0;
  for (const container of spec.initContainers ?? []) {
    if (isSidecar(container)) sidecars += amountOf(container);
    else initialising = Math.max(initialising, sidecars + amountOf(container));
  }
  return Math.max(
    initialising,
    spec.containers.reduce((sum, container) => sum + amountOf(container), sidecars),
  );
}
