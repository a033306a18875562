import { ownGraceSeconds, uidOf } from "../../ground/model/index.ts";
import type { ContainerKiller } from "./container-killer.ts";
import type { StarterPorts } from "./container-starter.ts";
import type { PodObserver } from "./observer.ts";

/** A container whose postStart hook has failed is stopped, with the grace that its pod has. */
export function killAfterFailedHook(
  observer: Pick<PodObserver, "inspect">,
  killer: Pick<ContainerKiller, "killContainer">,
): StarterPorts["killAfterFailedHook"] {
  return async (pod, id, signal) => {
    const { containers } = await observer.inspect(uidOf(pod), signal);
    const container = containers.find((candidate) => candidate.id === id);
    if (container === undefined) return;
    const graceSeconds = ownGraceSeconds(pod);
    const message = "FailedPostStartHook";
    await killer.killContainer({ pod, container, graceSeconds, message, preStopDone: new Set() }, signal);
  };
}
