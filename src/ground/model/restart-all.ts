import { newestOf, type ObservedContainer, type ObservedPod } from "./observed.ts";
import { containersOf, type IdentifiedPod } from "./pod.ts";
import { restartsAfter, ruleFor } from "./restart-policy.ts";

/** Whether a container of the pod has a rule by which its end restarts all of them. */
export function usesRestartAll({ spec }: IdentifiedPod): boolean {
  return [...(spec.initContainers ?? []), ...spec.containers].some(({ restartPolicyRules = [] }) =>
    restartPolicyRules.some(({ action }) => action === "RestartAllContainers"),
  );
}

/**
 * The container whose end asks that all containers of the pod start anew in their sandbox. Its record is the only note
 * of it: the record is removed last, so an agent that dies in between finds it again and goes on.
 */
export function restartAllTrigger(pod: IdentifiedPod, observed: ObservedPod): ObservedContainer | undefined {
  if (pod.metadata.deletionTimestamp !== undefined || !usesRestartAll(pod)) return undefined;
  const sandboxId = observed.sandboxes[0]?.id;
  for (const { kind, container } of containersOf(pod)) {
    const newest = kind === "ephemeral" ? undefined : newestOf(observed, container.name);
    if (newest?.state !== "exited" || newest.sandboxId !== sandboxId) continue;
    if (ruleFor(container, newest.exitCode) !== "RestartAllContainers") continue;
    return wasOver(pod, observed, newest) ? undefined : newest;
  }
  return undefined;
}

/** Whether the pod had done its work before this container, a sidecar then, ended: there is nothing left to start anew. */
function wasOver(pod: IdentifiedPod, observed: ObservedPod, trigger: ObservedContainer): boolean {
  return pod.spec.containers.every((container) => {
    const newest = newestOf(observed, container.name);
    if (newest?.state !== "exited" || restartsAfter(pod, container, newest.exitCode)) return false;
    return newest.finishedAt < trigger.finishedAt;
  });
}
