import { uidOf } from "../../ground/model/index.ts";
import type { ContainerKiller } from "./kill.ts";
import type { PodObserver } from "./observer.ts";
import type { StarterPorts } from "./starter.ts";

const defaultGraceSeconds = 30;

/** A container whose postStart hook has failed is stopped, with the grace that its pod has. */
export function killAfterFailedHook(
  observer: Pick<PodObserver, "inspect">,
  killer: Pick<ContainerKiller, "killContainer">,
): StarterPorts["killAfterFailedHook"] {
  return async (pod, id, signal) => {
    const { containers } = await observer.inspect(uidOf(pod), signal);
    const container = containers.find((candidate) => candidate.id === id);
    if (container === undefined) return;
    const graceSeconds = pod.spec.terminationGracePeriodSeconds ?? defaultGraceSeconds;
    const message = "FailedPostStartHook";
    await killer.killContainer({ pod, container, graceSeconds, message, preStopDone: new Set() }, signal);
  };
}
