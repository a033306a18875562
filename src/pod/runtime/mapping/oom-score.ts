import { oncePer } from "../../../ground/base/index.ts";
import {
  amountsOf,
  type Container,
  type IdentifiedPod,
  isCriticalPod,
  isSidecar,
  named,
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
  const { share, leastRequest } = ofPod(pod.spec);
  const scoreOf = (requestBytes: bigint): number => 1000 - Number((1000n * requestBytes) / memoryCapacityBytes);
  let score = scoreOf(memoryRequest(container) + share);
  const isInit = named(pod.spec.initContainers ?? [], container.name) !== undefined;
  // A sidecar must not die before the containers that rely on it; of those, the one that requests least dies first.
  if (isInit && isSidecar(container)) score = Math.min(score, scoreOf(leastRequest + share));
  if (score < lowestBurstableScore) return lowestBurstableScore;
  return score === bestEffortScore ? bestEffortScore - 1 : score;
}

// Asked for each container of a pod.
const ofPod = oncePer((spec: IdentifiedPod["spec"]) => {
  const [first = 0n, ...others] = spec.containers.map(memoryRequest);
  let leastRequest = first;
  for (const request of others) if (request < leastRequest) leastRequest = request;
  return { share: unassignedShare(spec), leastRequest };
});

/** What the pod requests as a whole beyond its containers, divided among them. */
function unassignedShare(spec: IdentifiedPod["spec"]): bigint {
  const podLevel = podLevelAmounts(spec, "requests").get("memory");
  if (podLevel === undefined || podLevel === 0n) return 0n;
  const ofContainers = sumOfContainers(spec, "requests").get("memory") ?? 0n;
  const count = BigInt(spec.containers.length + (spec.initContainers?.length ?? 0));
  return (wholeUnits(podLevel) - wholeUnits(ofContainers)) / count;
}

function memoryRequest(container: Container): bigint {
  return wholeUnits(amountsOf(container.resources?.requests).get("memory") ?? 0n);
}
