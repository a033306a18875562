import type { Life } from "../machine/timeline.ts";
import { type ContainerPlan, ruledCode } from "../pod-maker.ts";
import type { Ailments } from "./ailments.ts";
import { type ContainerRecord, isOver, type Seen, type SeenContainer } from "./seen-pods.ts";

/** Why the agent, in this life or in any, may stop a container that runs; undefined: it may not. */
export function causeToStop(
  sandboxState: ContainerRecord["sandbox"]["state"],
  { seen, plan }: SeenContainer,
  life: Life | undefined,
  ailments: Ailments,
): string | undefined {
  const { restartPolicy, activeDeadlineSeconds } = seen.plan.pod.spec ?? {};
  if (seen.unwantedAt !== undefined) return "its pod is to go";
  if (seen.evictedIn !== undefined && (life === undefined || seen.evictedIn === life)) return "the machine runs short";
  if (sandboxState !== "ready") return "its sandbox is dead";
  if (seen.hasLostSandbox) return "its pod has lost a sandbox";
  if (seen.restartsAll) return "its pod may start anew";
  if (plan.hasLiveness || plan.hasStartup) {
    if (ailments.wasSick(plan.name)) return "it does not live";
    if (ailments.wasSilent(plan.name)) return "the runtime did not answer its probe";
  }
  if (ailments.hasChanged(plan.name)) return "its spec has changed";
  if (plan.hasPostStart) return "its hook may have failed";
  if (activeDeadlineSeconds !== undefined) return "its pod has a deadline";
  if (isOver(seen.phase)) return "its pod is over";
  if (areMainsDone(seen, ailments)) return "the main containers are done";
  if (restartPolicy === "Never" && hasInitFailed(seen)) return "an init container has failed";
  return undefined;
}

/** Whether a container that ended so is to start again. */
export function restartsAfter({ restartPolicy, rule }: ContainerPlan, code: number): boolean {
  if (rule !== undefined && code === ruledCode) return true;
  return restartPolicy === "Always" || (restartPolicy === "OnFailure" && code !== 0);
}

/** No main container runs that will go on to, and none will start again. */
export function areMainsDone(seen: Seen, ailments: Ailments): boolean {
  return seen.plan.containers.every((each) => each.role !== "main" || isDone(seen, each, ailments));
}

function isDone(seen: Seen, plan: ContainerPlan, ailments: Ailments): boolean {
  const instance = seen.instances.get(plan.name)?.at(-1);
  if (instance === undefined) return false;
  // One that is being stopped because it does not live will not come back either.
  if (instance.ending === undefined) return plan.restartPolicy === "Never" && ailments.mayBeTakenForDead(plan);
  return !restartsAfter(plan, instance.ending.code);
}

function hasInitFailed({ plan, instances }: Seen): boolean {
  return plan.containers.some(
    ({ role, name }) =>
      role === "init" && (instances.get(name)?.some(({ ending }) => (ending?.code ?? 0) !== 0) ?? false),
  );
}
