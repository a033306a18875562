import {
  amountsOf,
  type Container,
  type IdentifiedPod,
  isCriticalPod,
  podLevelAmounts,
  qosClassOf,
  sumOfContainers,
  wholeUnits,
} from "../../../ground/model/index.ts";

const guaranteedScore = -997;
const bestEffortScore = 1000;
const lowestBurstableScore = 1000 + guaranteedScore;

/**
 * Who dies first when the node runs out of memory. A burstable container that stays below its request is spared
 * longer the larger its request is; one above it is as likely a victim as any.
 */
export function oomScoreAdj(pod: IdentifiedPod, container: Container, memoryCapacityBytes: bigint): number {
  if (isCriticalPod(pod) && pod.spec.priorityClassName === "system-node-critical") return guaranteedScore;
  const qos = qosClassOf(pod);
  if (qos === "Guaranteed") return guaranteedScore;
  if (qos === "BestEffort") return bestEffortScore;
  const share = unassignedShare(pod);
  const scoreOf = (requestBytes: bigint): number => 1000 - Number((1000n * requestBytes) / memoryCapacityBytes);
  let score = scoreOf(memoryRequest(container) + share);
  const isSidecar =
    container.restartPolicy === "Always" && pod.spec.initContainers?.some(({ name }) => name === container.name);
  if (isSidecar) {
    // A sidecar must not die before the containers that rely on it.
    const regularScores = pod.spec.containers.map((regular) => scoreOf(memoryRequest(regular) + share));
    score = Math.min(score, Math.max(...regularScores));
  }
  if (score < lowestBurstableScore) return lowestBurstableScore;
  return score === bestEffortScore ? bestEffortScore - 1 : score;
}

/** What the pod requests as a whole beyond its containers, divided among them. */
function unassignedShare({ spec }: IdentifiedPod): bigint {
  const podLevel = podLevelAmounts(spec, "requests").get("memory");
  if (podLevel === undefined || podLevel === 0n) return 0n;
  const ofContainers = sumOfContainers(spec, "requests").get("memory") ?? 0n;
  const count = BigInt(spec.containers.length + (spec.initContainers?.length ?? 0));
  return (wholeUnits(podLevel) - wholeUnits(ofContainers)) / count;
}

function memoryRequest(container: Container): bigint {
  return wholeUnits(amountsOf(container.resources?.requests).get("memory") ?? 0n);
}
