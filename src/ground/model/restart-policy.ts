import type { Container } from "./kube/gen/types.ts";
import type { ObservedContainer } from "./observed.ts";
import type { IdentifiedPod, PodContainer } from "./pod.ts";

type RestartPolicy = "Always" | "OnFailure" | "Never";

/** What a rule of a container asks for when the container ends with one of the rule's exit codes. */
export type RestartAction = "Restart" | "RestartAllContainers";

/**
 * Whether a container that does not run is started, for the first time or again. What is done and what is reported of
 * it must agree, so both ask here.
 */
export function restarts(
  pod: IdentifiedPod,
  { kind, container }: PodContainer,
  newest: ObservedContainer | undefined,
): boolean {
  if (kind === "ephemeral") return newest === undefined;
  if (kind === "sidecar" || newest?.state !== "exited") return true;
  return restartsAfter(pod, container, newest.exitCode);
}

/** Whether a container that ended with this code starts again: by its first rule for the code, then by its policy. */
export function restartsAfter(pod: IdentifiedPod, container: Container, exitCode: number): boolean {
  if (ruleFor(container, exitCode) !== undefined) return true;
  const policy = restartPolicyOf(pod, container);
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

/** The container's own policy, or else its pod's. Decides alone where there is no exit code yet: rules need one. */
export function restartPolicyOf(pod: IdentifiedPod, container: Container): RestartPolicy {
  const policy = container.restartPolicy ?? pod.spec.restartPolicy;
  return policy === "Never" || policy === "OnFailure" ? policy : "Always";
}

/** Whether there is any end after which the container starts again. */
export function mayRestart(pod: IdentifiedPod, container: Container): boolean {
  return restartPolicyOf(pod, container) !== "Never" || rulesOf(container).length > 0;
}

/** What the container's first rule for this exit code asks for. */
export function ruleFor(container: Container, exitCode: number): RestartAction | undefined {
  const rule = rulesOf(container).find(({ exitCodes: { operator, values = [] } }) => {
    if (operator === "In") return values.includes(exitCode);
    return operator === "NotIn" && !values.includes(exitCode);
  });
  return rule?.action;
}

interface Rule {
  readonly action: RestartAction;
  readonly exitCodes: { readonly operator: string; readonly values?: readonly number[] | undefined };
}

/** Rules count only beside a policy of the container's own; one of a kind that nobody knows is left out. */
function rulesOf({ restartPolicy, restartPolicyRules = [] }: Container): readonly Rule[] {
  if (restartPolicy === undefined) return [];
  return restartPolicyRules.flatMap(({ action, exitCodes }) =>
    exitCodes !== undefined && isAction(action) ? [{ action, exitCodes }] : [],
  );
}

function isAction(action: string): action is RestartAction {
  return action === "Restart" || action === "RestartAllContainers";
}
