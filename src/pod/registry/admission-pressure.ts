import { type IdentifiedPod, isTolerated, qosClassOf } from "../../ground/model/index.ts";
import type { AdmissionHandler } from "./admission.ts";

const memoryPressureTaint = { key: "node.kubernetes.io/memory-pressure", effect: "NoSchedule" };

/** Refuses pods that a node under pressure can't take. Who asked for memory gets it; who asked for nothing does not. */
export function pressureHandler(node: {
  /** Types of conditions, such as MemoryPressure. */
  readonly conditions: () => readonly string[];
  /** The node can't do without it. */
  readonly isCritical: (pod: IdentifiedPod) => boolean;
  /** Pods that can't be taken now wait until the pressure is over, instead of having failed. */
  readonly mayWait: boolean;
}): AdmissionHandler {
  return (pod) => {
    const conditions = node.conditions();
    if (conditions.length === 0 || node.isCritical(pod)) return { type: "admitted" };
    if (conditions.every((type) => type === "MemoryPressure")) {
      const asksForSome = qosClassOf(pod) !== "BestEffort";
      if (asksForSome || isTolerated(memoryPressureTaint, pod.spec.tolerations ?? [])) return { type: "admitted" };
    }
    if (node.mayWait) return { type: "undecided", waitsFor: `the node to be free of ${conditions.join(" and ")}` };
    return { type: "rejected", reason: "Evicted", message: `The node had condition: [${conditions.join(" ")}]. ` };
  };
}
