import type { ContainerKind, IdentifiedPod, ObservedContainer } from "../../ground/model/index.ts";

/** Whether a container that does not run will be started again under the pod's policy. */
export function restartsAfterExit(pod: IdentifiedPod, kind: ContainerKind, record: ObservedContainer): boolean {
  if (kind === "ephemeral") return false;
  if (kind === "sidecar" || record.state !== "exited") return true;
  switch (pod.spec.restartPolicy) {
    case "Never":
      return false;
    case "OnFailure":
      return record.exitCode !== 0;
    default:
      return true;
  }
}
