import {
  type Container,
  type IdentifiedPod,
  isSidecar,
  newestOf,
  type ObservedContainer,
  type ObservedPod,
  restartPolicyOf,
  restartsAfter,
} from "../../ground/model/index.ts";
import type { PlanInput } from "./plan-input.ts";
import { type ContainerKill, killForUnknown, planSidecarRestart } from "./plan-restart.ts";

export type InitPlan =
  /** An init container failed for good: the pod is over. */
  | { readonly type: "failed" }
  | {
      readonly type: "going";
      /** All init containers are done (sidecars: started), the regular ones may run. */
      readonly initialised: boolean;
      readonly start: readonly string[];
      readonly kills: readonly ContainerKill[];
    };

/**
 * Init containers are judged from last to first: the newest one with a record decides how far the pod has come,
 * because the records of earlier ones may already be gone. At most one plain init container is started at a time;
 * sidecars before it are kept alive meanwhile.
 */
export function planInitContainers(input: PlanInput): InitPlan {
  const { pod, observed } = input;
  const initContainers = pod.spec.initContainers ?? [];
  const start: string[] = [];
  const kills: ContainerKill[] = [];
  let initialised = initContainers.length === 0 || isProvenInitialised(observed, pod.spec.containers);
  const known = initContainers.some((container) => newestOf(observed, container.name) !== undefined);
  let frontier: "unknown" | "passed" = initialised || !known ? "passed" : "unknown";
  const [first] = initContainers;
  if (!known && !initialised && first !== undefined) start.push(first.name);

  for (let index = initContainers.length - 1; index >= 0; index--) {
    const container = initContainers[index];
    if (container === undefined) continue;
    const newest = newestOf(observed, container.name);
    // Sidecars behind the frontier, or of an initialised pod, only need to be kept alive.
    if (frontier === "passed") {
      if (isSidecar(container) && (known || initialised)) keepSidecarAlive(input, container, start, kills);
      continue;
    }
    if (newest === undefined) continue;
    frontier = "passed";
    const progress = isSidecar(container)
      ? keepSidecarAlive(input, container, start, kills)
      : judgeInit(input, container, newest, start, kills);
    if (progress === "failed") return { type: "failed" };
    if (progress === "waiting") continue;
    const next = initContainers[index + 1];
    if (next === undefined) initialised = true;
    else start.push(next.name);
  }
  return { type: "going", initialised, start: start.reverse(), kills };
}

// A regular container that was created or runs proves it; an exited one may be from before a reboot.
function isProvenInitialised(observed: ObservedPod, containers: readonly Container[]): boolean {
  const sandboxId = observed.sandboxes[0]?.id;
  const names = new Set(containers.map((container) => container.name));
  return observed.containers.some(
    ({ name, state, sandboxId: own }) =>
      names.has(name) && own === sandboxId && (state === "created" || state === "running"),
  );
}

function judgeInit(
  { pod }: PlanInput,
  container: Container,
  newest: ObservedContainer,
  start: string[],
  kills: ContainerKill[],
): "waiting" | "done" | "failed" {
  if (newest.state === "running") return "waiting";
  if (newest.state === "exited" && newest.exitCode === 0 && newest.reason !== "OOMKilled") return "done";
  if (newest.state !== "created") {
    if (!startsAfterFailure(pod, container, newest)) return "failed";
    const kill = killForUnknown("Init container", newest);
    if (kill !== undefined) kills.push(kill);
  }
  start.push(container.name);
  return "waiting";
}

/** One that ended well by its code and yet failed (out of memory), or whose end nobody saw, goes by its policy alone. */
function startsAfterFailure(pod: IdentifiedPod, container: Container, { state, exitCode }: ObservedContainer): boolean {
  if (state === "exited" && exitCode !== 0) return restartsAfter(pod, container, exitCode);
  return restartPolicyOf(pod, container) !== "Never";
}

/** "done" when the next init container may start. */
function keepSidecarAlive(
  input: PlanInput,
  container: Container,
  start: string[],
  kills: ContainerKill[],
): "waiting" | "done" {
  const { kill, starts, letsNextStart } = planSidecarRestart(input, container);
  if (kill !== undefined) kills.push(kill);
  if (starts) start.push(container.name);
  return letsNextStart ? "done" : "waiting";
}
