import {
  type Container,
  type IdentifiedPod,
  type ObservedContainer,
  type ObservedPod,
  restarts,
} from "../../ground/model/index.ts";

/** All that a plan is made from. */
export interface PlanInput {
  readonly pod: IdentifiedPod;
  readonly observed: ObservedPod;
  readonly probes: ProbeResults;
  readonly hashOf: (container: Container) => string;
}

/** What the probes last said of a container instance; undefined when it has no such probe or no result yet. */
export interface ProbeResults {
  liveness(container: ObservedContainer): "success" | "failure" | "unknown" | undefined;
  startup(container: ObservedContainer): "success" | "failure" | "unknown" | undefined;
}

export type ProbeFailure = "livenessProbe" | "startupProbe";
export type KillCause = "definitionChanged" | "unknownState" | ProbeFailure;

/** A container that must be stopped, with the words its users read. */
export interface ContainerKill {
  readonly container: ObservedContainer;
  readonly message: string;
  readonly because: KillCause;
}

type Noun = "Container" | "Init container";

/** Whether a container that does not run is to be started. */
export function shouldRestart(pod: IdentifiedPod, newest: ObservedContainer | undefined): boolean {
  return pod.metadata.deletionTimestamp === undefined && restarts(pod, "regular", newest);
}

/** The kill that a running container needs, if any. */
export function killForRunning(
  { probes, hashOf }: PlanInput,
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
  return undefined;
}

/** What an unknown container does nobody can say: it must be dead before a second one starts. */
export function killForUnknown(noun: Noun, container: ObservedContainer): ContainerKill {
  return {
    container,
    because: "unknownState",
    message: `${noun} is in "unknown" state, try killing it before restart`,
  };
}
