import { type IdentifiedPod, isCriticalPod, isMirrorPod, isStaticPod } from "../../ground/model/index.ts";

/**
 * Why the node never takes a pod off; undefined: it may. Without a cluster, that a pod comes from a file says nothing of
 * its weight: all do.
 */
export function exemptionOf(pod: IdentifiedPod, isStandalone: boolean): string | undefined {
  if (!isCriticalPod(isStandalone ? { ...pod, metadata: {} } : pod)) return undefined;
  if (isStandalone) return "its priority is that of the node's own parts";
  if (isStaticPod(pod)) return "it comes from a file of this node, which would not bring it back";
  return isMirrorPod(pod) ? "it stands for a pod from a file" : "its priority is that of the node's own parts";
}
