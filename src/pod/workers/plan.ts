import {
  containersOf,
  isSidecar,
  mayRestart,
  newestOf,
  type ObservedContainer,
  restartAllTrigger,
  type SandboxId,
} from "../../ground/model/index.ts";
import { planInitContainers } from "./plan-init.ts";
import type { PlanInput } from "./plan-input.ts";
import { noResize, planResize, type ResizePlan } from "./plan-resize.ts";
import { type ContainerKill, killForRestartAll, planRestart, startsAgain } from "./plan-restart.ts";
import { planSandbox, type SandboxPlan } from "./plan-sandbox.ts";

/** What must happen to bring the runtime from what is observed to what the pod wants. Applied from top to bottom. */
export interface PodPlan {
  /** Stop everything of the pod, sandboxes included, before anything else. */
  readonly killPod: boolean;
  readonly kills: readonly ContainerKill[];
  /** All records are removed, so that everything starts anew in its sandbox: this container's end asks for it. */
  readonly restartAll: ObservedContainer | undefined;
  readonly sandbox: SandboxPlan | { readonly type: "none" };
  /** Names, in the order of the spec. */
  readonly startEphemeral: readonly string[];
  readonly startInit: readonly string[];
  /** Running containers, and the pod itself, that get other resources in place. */
  readonly resize: ResizePlan;
  readonly startRegular: readonly string[];
}

export function planPod(input: PlanInput): PodPlan {
  const sandbox = planSandbox(input.pod, input.observed);
  return sandbox.type === "create" ? planInNewSandbox(input, sandbox) : planInSandbox(input, sandbox.id);
}

const nothing: PodPlan = {
  killPod: false,
  kills: [],
  restartAll: undefined,
  sandbox: { type: "none" },
  startEphemeral: [],
  startInit: [],
  resize: noResize,
  startRegular: [],
};

function planInNewSandbox(input: PlanInput, sandbox: Extract<SandboxPlan, { type: "create" }>): PodPlan {
  const { pod, observed } = input;
  const { spec } = pod;
  const killPod = observed.sandboxes.length > 0 || observed.containers.length > 0;
  const killOnly: PodPlan = { ...nothing, killPod };
  if (pod.metadata.deletionTimestamp !== undefined) return killOnly;
  const runsOnce = spec.restartPolicy === "Never" && !spec.containers.some((container) => mayRestart(pod, container));
  if (runsOnce && sandbox.attempt !== 0 && hasBegunWork(input)) return killOnly;
  // One that is not to start again does not in a new sandbox either: its status could not tell of it.
  const startsAnew = restartAllTrigger(pod, observed) !== undefined;
  const toStart = spec.containers.filter(
    (container) => startsAnew || startsAgain(input, container, newestOf(observed, container.name)),
  );
  const everCreated = spec.containers.some((container) => newestOf(observed, container.name) !== undefined);
  if (toStart.length === 0 && everCreated) return killOnly;
  const [firstInit] = spec.initContainers ?? [];
  return {
    ...nothing,
    killPod,
    sandbox,
    startInit: firstInit === undefined ? [] : [firstInit.name],
    startRegular: firstInit === undefined ? toStart.map((container) => container.name) : [],
  };
}

/**
 * Whether something has run, or may have, that is not to run twice. Sidecars and init containers that succeeded only come
 * before that: a pod that has nothing else would wait for ever, as it does under the kubelet, if it got no other sandbox.
 */
function hasBegunWork({ pod: { spec }, observed }: PlanInput): boolean {
  const hasBegun = (name: string): boolean => !["created", undefined].includes(newestOf(observed, name)?.state);
  const succeeded = (name: string): boolean => {
    const { state, exitCode } = newestOf(observed, name) ?? {};
    return state === "exited" && exitCode === 0;
  };
  const init = spec.initContainers?.filter((container) => !isSidecar(container)) ?? [];
  return (
    spec.containers.some(({ name }) => hasBegun(name)) || init.some(({ name }) => hasBegun(name) && !succeeded(name))
  );
}

function planInSandbox(input: PlanInput, sandboxId: SandboxId): PodPlan {
  const { pod, observed } = input;
  const sandbox = { type: "keep", id: sandboxId } as const;
  const trigger = restartAllTrigger(pod, observed);
  if (trigger !== undefined) return { ...nothing, sandbox, restartAll: trigger, kills: killsOfAll(input, trigger) };
  const startEphemeral = (pod.spec.ephemeralContainers ?? [])
    .map((container) => container.name)
    .filter((name) => newestOf(observed, name) === undefined);
  const init = planInitContainers(input);
  if (init.type === "failed") return { ...nothing, killPod: true };
  if (!init.initialised) {
    const { kills, start } = init;
    return { ...nothing, sandbox, kills, startEphemeral, startInit: start, resize: planResize(input, namesOf(kills)) };
  }

  const decisions = pod.spec.containers.map((container) => planRestart(input, container));
  const startRegular = pod.spec.containers.flatMap(({ name }, index) => (decisions[index]?.starts ? [name] : []));
  // Sidecars live for the regular containers: when none of those is left, the pod is over.
  if (startRegular.length === 0 && !decisions.some(({ goesOn }) => goesOn)) return { ...nothing, killPod: true };
  const kills = [...init.kills, ...decisions.flatMap(({ kill }) => kill ?? [])];
  return {
    ...nothing,
    kills,
    sandbox,
    startEphemeral,
    startInit: init.start,
    resize: planResize(input, namesOf(kills)),
    startRegular,
  };
}

function namesOf(kills: readonly ContainerKill[]): ReadonlySet<string> {
  return new Set(kills.map(({ container }) => container.name));
}

/** What runs of the pod, or may run, but for what people have attached to it. */
function killsOfAll({ pod, observed }: PlanInput, trigger: ObservedContainer): readonly ContainerKill[] {
  return containersOf(pod)
    .filter(({ kind }) => kind !== "ephemeral")
    .flatMap(({ container }) => newestOf(observed, container.name) ?? [])
    .filter(({ state }) => state === "running" || state === "unknown")
    .map((container) => killForRestartAll(container, trigger));
}
