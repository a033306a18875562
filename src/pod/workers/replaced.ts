import {
  type IdentifiedPod,
  newestOf,
  type ObservedContainer,
  type ObservedPod,
  restartPolicyOf,
} from "../../ground/model/index.ts";
import type { PodPlan } from "./plan.ts";
import type { PodWorker } from "./pod-worker.ts";

/**
 * Notes which containers are killed so that others take their place, where the restart policy would not bring those: one
 * that ends well when it is asked to is no container that has done its work. True: there is something new to be kept.
 */
export function noteReplaced(
  { replaced }: PodWorker,
  pod: IdentifiedPod,
  plan: PodPlan,
  observed: ObservedPod,
): boolean {
  let isNews = false;
  for (const { name, id } of replacedBy(pod, plan, observed)) {
    if (replaced.get(name) === id) continue;
    replaced.set(name, id);
    isNews = true;
  }
  return isNews;
}

function replacedBy(pod: IdentifiedPod, plan: PodPlan, observed: ObservedPod): readonly ObservedContainer[] {
  const [killed, started] = [killedBy(plan), new Set(plan.startRegular)];
  if (killed.size === 0 && !plan.killPod) return [];
  return pod.spec.containers.flatMap((spec) => {
    const newest = newestOf(observed, spec.name);
    if (newest === undefined || restartPolicyOf(pod, spec) === "Always") return [];
    // In a new sandbox all start again that run now, be it after the init containers.
    const isLeftBehind = plan.killPod && plan.sandbox.type === "create" && newest.state === "running";
    return isLeftBehind || (killed.has(newest.id) && started.has(spec.name)) ? [newest] : [];
  });
}

/** One that runs, and is not to be killed any more, has done its work when it ends. */
export function forgetSpared({ replaced }: PodWorker, observed: ObservedPod, plan: PodPlan): void {
  const killed = killedBy(plan);
  for (const name of [...replaced.keys()]) {
    const newest = newestOf(observed, name);
    if (newest?.state === "running" && !plan.killPod && !killed.has(newest.id)) replaced.delete(name);
  }
}

function killedBy({ kills }: PodPlan): ReadonlySet<string> {
  return new Set(kills.map(({ container }) => container.id));
}
