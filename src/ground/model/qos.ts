import type { Container, PodSpec } from "./kube/gen/types.ts";
import type { IdentifiedPod } from "./pod.ts";
import { addAmounts, amountsOf, type ResourceAmounts } from "./resource-list.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

/** The class recorded in the status if there is one (it never changes in a pod's life), else the computed one. */
export function qosClassOf(pod: IdentifiedPod): QosClass {
  const recorded = pod.status?.qosClass;
  return isQosClass(recorded) ? recorded : computeQosClass(pod.spec);
}

/** Only cpu and memory count, zero counts as absent, ephemeral containers do not count. */
export function computeQosClass(spec: Pick<PodSpec, "containers" | "initContainers" | "resources">): QosClass {
  const declarations: readonly Pick<Container, "resources">[] =
    spec.resources === undefined ? [...spec.containers, ...(spec.initContainers ?? [])] : [spec];
  let requests: ResourceAmounts = new Map();
  let limits: ResourceAmounts = new Map();
  let allFullyLimited = true;
  for (const { resources } of declarations) {
    const ownLimits = counted(amountsOf(resources?.limits));
    requests = addAmounts(requests, counted(amountsOf(resources?.requests)));
    limits = addAmounts(limits, ownLimits);
    allFullyLimited &&= ownLimits.size === countedResources.length;
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const equal = requests.size === limits.size && [...requests].every(([name, request]) => limits.get(name) === request);
  return allFullyLimited && equal ? "Guaranteed" : "Burstable";
}

const countedResources = ["cpu", "memory"];

function counted(amounts: ResourceAmounts): ResourceAmounts {
  return new Map([...amounts].filter(([name, amount]) => amount > 0n && countedResources.includes(name)));
}

function isQosClass(value: string | undefined): value is QosClass {
  return value === "Guaranteed" || value === "Burstable" || value === "BestEffort";
}
