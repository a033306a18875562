import type { IdentifiedPod, ObservedPod, SandboxId } from "../../ground/model/index.ts";

export type SandboxPlan =
  | { readonly type: "keep"; readonly id: SandboxId }
  /** `replaced` is known when the old sandbox died on us, which users are told; not when the spec changed. */
  | { readonly type: "create"; readonly attempt: number; readonly replaced: SandboxId | undefined };

/** Whether the pod can go on in its newest sandbox, or needs a new one. */
export function planSandbox(pod: IdentifiedPod, observed: ObservedPod): SandboxPlan {
  const [current] = observed.sandboxes;
  if (current === undefined) return { type: "create", attempt: 0, replaced: undefined };
  const attempt = current.attempt + 1;
  const readyCount = observed.sandboxes.filter((sandbox) => sandbox.state === "ready").length;
  if (readyCount > 1 || current.state !== "ready") return { type: "create", attempt, replaced: current.id };
  const wantsHostNetwork = pod.spec.hostNetwork === true;
  if ((current.network === "node") !== wantsHostNetwork) return { type: "create", attempt, replaced: undefined };
  if (!wantsHostNetwork && current.ip === "") return { type: "create", attempt, replaced: current.id };
  return { type: "keep", id: current.id };
}
