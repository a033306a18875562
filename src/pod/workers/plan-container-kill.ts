import { type Container, dueResize, type ObservedContainer } from "../../ground/model/index.ts";
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

type Noun = "Container" | "Init container";

/** The kill that a running container needs, if any: its definition changed, or its liveness or startup probe failed. */
export function killForRunning(
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
export function killForUnknown(noun: Noun, container: ObservedContainer): ContainerKill {
  return {
    container,
    because: "unknownState",
    message: `${noun} is in "unknown" state, try killing it before restart`,
  };
}
