import type { ObservedContainer } from "./observed.ts";
import type { ContainerKind, IdentifiedPod } from "./pod.ts";

/**
 * Whether a container that does not run is started, for the first time or again. What is done and what is reported of
 * it must agree, so both ask here.
 */
export function restarts(pod: IdentifiedPod, kind: ContainerKind, newest: ObservedContainer | undefined): boolean {
  if (kind === "ephemeral") return newest === undefined;
  if (kind === "sidecar" || newest?.state !== "exited") return true;
  switch (pod.spec.restartPolicy) {
    case "Never":
      return false;
    case "OnFailure":
      return newest.exitCode !== 0;
    default:
      return true;
  }
}
