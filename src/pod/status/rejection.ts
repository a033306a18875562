import { apiTime, type IdentifiedPod, type PodStatus, qosClassOf } from "../../ground/model/index.ts";

/** The status of a pod that the node refuses: why, and what every status has. */
export function rejectedStatus(pod: IdentifiedPod, why: PodStatus, now: number): PodStatus {
  const { generation: observedGeneration } = pod.metadata;
  return {
    ...(observedGeneration === undefined ? {} : { observedGeneration }),
    ...why,
    startTime: apiTime(now),
    qosClass: qosClassOf(pod),
  };
}
