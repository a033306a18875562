import {
  type IdentifiedPod,
  isCriticalPod,
  podResources,
  qosClassOf,
  type ResourceAmounts,
} from "../../ground/model/index.ts";
import type { AdmissionVerdict } from "./admission.ts";
import { type Lack, unitsOf } from "./lacking-resources.ts";

/** How much of a resource is missing, in the units that amounts are counted in; of "pods" it is a number of them. */
type Shortage = ReadonlyMap<string, bigint>;

/** A critical pod is taken although there is no room, when others can give way to it. */
export function makeRoom(
  pod: IdentifiedPod,
  others: readonly IdentifiedPod[],
  lacks: readonly Lack[],
): AdmissionVerdict {
  const shortage = new Map(
    lacks.map(({ resource, requested, used, capacity }) => [resource, requested - (capacity - used)] as const),
  );
  const choice = chooseVictims(pod, others, shortage);
  if ("victims" in choice) {
    return { type: "admitted", preempts: { victims: choice.victims, resource: lacks[0]?.resource ?? "" } };
  }
  const missing = [...choice.missing].map(([name, amount]) => `(res: ${name}, q: ${unitsOf(name)(amount)}), `);
  const cause = `no set of running pods found to reclaim resources: [${missing.join("")}]`;
  const message = `Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: ${cause}`;
  return { type: "rejected", reason: "UnexpectedAdmissionError", message };
}

/**
 * The pods that have to go so that a critical one finds room: as few guaranteed ones as possible, then as few burstable
 * ones, then as few of those that were promised nothing. Undefined when all that may be taken off would not suffice;
 * `missing` then says what would still be lacking.
 */
function chooseVictims(
  critical: IdentifiedPod,
  others: readonly IdentifiedPod[],
  shortage: Shortage,
): { readonly victims: readonly IdentifiedPod[] } | { readonly missing: Shortage } {
  const candidates = others.filter((other) => givesWay(other, critical)).map(candidateOf);
  const missing = less(shortage, candidates);
  if (missing.size > 0) return { missing };
  const ofClass = (qos: string): readonly Candidate[] => candidates.filter((candidate) => candidate.qos === qos);
  const [guaranteed, burstable, bestEffort] = ["Guaranteed", "Burstable", "BestEffort"].map(ofClass);
  const first = closest(guaranteed ?? [], less(shortage, [...(burstable ?? []), ...(bestEffort ?? [])]));
  const second = closest(burstable ?? [], less(shortage, [...first, ...(bestEffort ?? [])]));
  const third = closest(bestEffort ?? [], less(shortage, [...first, ...second]));
  return { victims: [...third, ...second, ...first].map(({ pod }) => pod) };
}

function givesWay(other: IdentifiedPod, critical: IdentifiedPod): boolean {
  if (isCriticalPod(critical) && !isCriticalPod(other)) return true;
  const [mine, theirs] = [critical.spec.priority, other.spec.priority];
  return mine !== undefined && theirs !== undefined && mine > theirs;
}

interface Candidate {
  readonly pod: IdentifiedPod;
  readonly qos: string;
  readonly requests: ResourceAmounts;
}

function candidateOf(pod: IdentifiedPod): Candidate {
  const requests = new Map(podResources(pod.spec, "with overhead").requests);
  return { pod, qos: qosClassOf(pod), requests: requests.set("pods", 1n) };
}

/** What is still missing when these have gone. */
function less(shortage: Shortage, gone: readonly Candidate[]): Shortage {
  const left = new Map<string, bigint>();
  for (const [name, needed] of shortage) {
    const freed = gone.reduce((sum, { requests }) => sum + (requests.get(name) ?? 0n), 0n);
    if (freed < needed) left.set(name, needed - freed);
  }
  return left;
}

/** One after the other, the pod that comes closest to what is still missing. */
function closest(candidates: readonly Candidate[], shortage: Shortage): readonly Candidate[] {
  const chosen: Candidate[] = [];
  let missing = shortage;
  const left = new Set(candidates);
  while (missing.size > 0 && left.size > 0) {
    let best: Candidate | undefined;
    for (const candidate of left) if (best === undefined || isBetter(candidate, best, missing)) best = candidate;
    if (best === undefined) break;
    left.delete(best);
    chosen.push(best);
    missing = less(missing, [best]);
  }
  return chosen;
}

function isBetter(a: Candidate, b: Candidate, missing: Shortage): boolean {
  const difference = distance(a, missing) - distance(b, missing);
  if (difference !== 0) return difference < 0;
  for (const name of ["memory", "cpu"]) {
    const [mine, theirs] = [a.requests.get(name) ?? 0n, b.requests.get(name) ?? 0n];
    if (mine !== theirs) return mine < theirs;
  }
  return false;
}

/** 0 for a pod that frees all that is missing; each resource counts by the share that it leaves open. */
function distance({ requests }: Candidate, missing: Shortage): number {
  let sum = 0;
  for (const [name, needed] of missing) {
    const open = needed - (requests.get(name) ?? 0n);
    if (open > 0n) sum += (Number(open) / Number(needed)) ** 2;
  }
  return sum;
}
