import { oncePer } from "../base/index.ts";
import type { Container, PodSpec, Quantity } from "./kube/gen/types.ts";
import type { IdentifiedPod } from "./pod.ts";
import { type Nano, parseQuantity } from "./quantity.ts";
import { addInto, type ResourceAmounts } from "./resource-list.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

/** The class recorded in the status if there is one (it never changes in a pod's life), else the computed one. */
export function qosClassOf(pod: IdentifiedPod): QosClass {
  const recorded = pod.status?.qosClass;
  return isQosClass(recorded) ? recorded : qosClassIn(pod.spec);
}

const qosClassIn = oncePer((spec: IdentifiedPod["spec"]) => computeQosClass(spec));

/** Only cpu and memory count, zero counts as absent, ephemeral containers do not count. */
export function computeQosClass(spec: Pick<PodSpec, "containers" | "initContainers" | "resources">): QosClass {
  const declarations: readonly Pick<Container, "resources">[] =
    spec.resources === undefined ? [...listed(spec.containers), ...listed(spec.initContainers)] : [spec];
  const requests = new Map<string, Nano>();
  const limits = new Map<string, Nano>();
  let allFullyLimited = true;
  for (const { resources } of declarations) {
    const ownLimits = counted(resources?.limits);
    addInto(requests, counted(resources?.requests));
    addInto(limits, ownLimits);
    allFullyLimited &&= ownLimits.size === countedResources.length;
  }
  if (requests.size === 0 && limits.size === 0) return "BestEffort";
  const equal = requests.size === limits.size && [...requests].every(([name, request]) => limits.get(name) === request);
  return allFullyLimited && equal ? "Guaranteed" : "Burstable";
}

/** A pod that nobody has checked may have a long text in place of a list: that is no million of containers. */
function listed(containers: PodSpec["containers"] | undefined): readonly Container[] {
  return Array.isArray(containers) ? (containers as readonly Container[]) : [];
}

const countedResources = ["cpu", "memory"];

/** However many resources a list names, only these are looked at. */
function counted(list: Readonly<Record<string, Quantity>> | undefined): ResourceAmounts {
  const amounts = new Map<string, Nano>();
  for (const name of countedResources) {
    const quantity = list?.[name];
    const amount = quantity === undefined ? 0n : parseQuantity(quantity);
    if (amount > 0n) amounts.set(name, amount);
  }
  return amounts;
}

function isQosClass(value: string | undefined): value is QosClass {
  return value === "Guaranteed" || value === "Burstable" || value === "BestEffort";
}
