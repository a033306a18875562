import {
  type Container,
  dueResize,
  newestOf,
  type ObservedContainer,
  restartPolicyOf,
  restarts,
} from "../../ground/model/index.ts";
import type { PlanInput } from "./plan-input.ts";
import { needsRestart } from "./plan-resize.ts";

export type ProbeFailure = "livenessProbe" | "startupProbe";
export type KillCause = "definitionChanged" | "resized" | "unknownState" | "restartAllContainers" | ProbeFailure;

/** A container that must be stopped, with the words its users read. */
export interface ContainerKill {
  readonly container: ObservedContainer;
  readonly message: string;
  readonly because: KillCause;
}

/** What happens to one container. */
export interface RestartPlan {
  /** It runs, and is left alone. */
  readonly goesOn: boolean;
  readonly kill: ContainerKill | undefined;
  /** After the kill, if there is one. */
  readonly starts: boolean;
}

/** A regular container: it goes on, is killed and perhaps started again, or has ended and perhaps starts again. */
export function planRestart(input: PlanInput, container: Container): RestartPlan {
  const { pod, observed } = input;
  const newest = newestOf(observed, container.name);
  if (newest?.state !== "running") {
    const starts = startsAgain(input, container, newest);
    return { goesOn: false, kill: starts ? killForUnknown("Container", newest) : undefined, starts };
  }
  const restartsKilled = restartPolicyOf(pod, container) !== "Never";
  const kill = killForRunning(input, "Container", container, newest, restartsKilled);
  if (kill === undefined) return { goesOn: true, kill, starts: false };
  // A changed image restarts whatever the policy: the user asked for it.
  const starts = restartsKilled || kill.because === "definitionChanged" || kill.because === "resized";
  return { goesOn: false, kill, starts };
}

/** Whether a regular container that does not run is to be started. */
export function startsAgain(
  { pod, isReplaced }: PlanInput,
  container: Container,
  newest: ObservedContainer | undefined,
): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  const isToBeReplaced = newest !== undefined && isReplaced?.(newest) === true;
  return isToBeReplaced || restarts(pod, { kind: "regular", container }, newest);
}

/** A sidecar is started again whatever became of it, until its pod ends. `letsNextStart`: its successors may start. */
export function planSidecarRestart(
  input: PlanInput,
  container: Container,
): RestartPlan & { readonly letsNextStart: boolean } {
  const newest = newestOf(input.observed, container.name);
  if (newest?.state !== "running") {
    const starts = input.pod.metadata.deletionTimestamp === undefined;
    return { goesOn: false, kill: killForUnknown("Init container", newest), starts, letsNextStart: false };
  }
  const kill = killForRunning(input, "Init container", container, newest, true);
  if (kill === undefined) {
    const isStarted = container.startupProbe === undefined || input.probes.startup(newest) === "success";
    return { goesOn: true, kill, starts: false, letsNextStart: isStarted };
  }
  // One that has started once has let its successors go ahead; its liveness does not hold them back.
  return { goesOn: false, kill, starts: true, letsNextStart: kill.because === "livenessProbe" };
}

type Noun = "Container" | "Init container";

/** The kill that a running container needs, if any: its definition changed, or its liveness or startup probe failed. */
function killForRunning(
  { pod, probes, hashOf, given }: PlanInput,
  noun: Noun,
  container: Container,
  running: ObservedContainer,
  restarts: boolean,
): ContainerKill | undefined {
  const { name } = container;
  if (running.annotations.hash !== hashOf(container)) {
    const message = `${noun} ${name} definition changed, will be restarted`;
    return { container: running, because: "definitionChanged", message };
  }
  const suffix = restarts ? ", will be restarted" : "";
  if (probes.liveness(running) === "failure") {
    return { container: running, because: "livenessProbe", message: `${noun} ${name} failed liveness probe${suffix}` };
  }
  if (probes.startup(running) === "failure") {
    return { container: running, because: "startupProbe", message: `${noun} ${name} failed startup probe${suffix}` };
  }
  if (needsRestart(container, dueResize(pod, container, running, given))) {
    return { container: running, because: "resized", message: `Container ${name} resize requires restart` };
  }
  return undefined;
}

/** The kill of a container that did nothing wrong: another one's end restarts them all. */
export function killForRestartAll(container: ObservedContainer, trigger: ObservedContainer): ContainerKill {
  const message = `Container ${container.name} will be restarted: all containers restart because ${trigger.name} exited with code ${trigger.exitCode}`;
  return { container, because: "restartAllContainers", message };
}

/** What an unknown container does nobody can say: it must be dead before a second one starts. */
export function killForUnknown(noun: Noun, container: ObservedContainer | undefined): ContainerKill | undefined {
  if (container?.state !== "unknown") return undefined;
  return {
    container,
    because: "unknownState",
    message: `${noun} is in "unknown" state, try killing it before restart`,
  };
}
