import { type IdentifiedPod, jsonEqual, type PodStatus } from "../../ground/model/index.ts";

/**
 * Whether a status says nothing that the next one, which is under way, won't say better: that a new pod's containers are
 * being made, or that a pod's deletion was noticed. On its way to the API it would only be in the way of the next.
 */
export function isPassing(api: IdentifiedPod, status: PodStatus): boolean {
  const shown = api.status ?? {};
  if (api.metadata.deletionTimestamp !== undefined) return jsonEqual(ungenerated(shown), ungenerated(status));
  return isBeingMade(shown) && isBeingMade(status) && status.containerStatuses !== undefined;
}

function isBeingMade({ phase, reason, containerStatuses = [], initContainerStatuses = [] }: PodStatus): boolean {
  return (
    (phase === undefined || phase === "Pending") &&
    reason === undefined &&
    [...initContainerStatuses, ...containerStatuses].every(
      ({ state, restartCount }) =>
        restartCount === 0 &&
        state?.running === undefined &&
        state?.terminated === undefined &&
        (state?.waiting?.reason === "ContainerCreating" || state?.waiting?.reason === "PodInitializing"),
    )
  );
}

/** Without the generations it was computed for. */
function ungenerated({ observedGeneration: _, conditions = [], ...rest }: PodStatus): object {
  const bare = conditions.map(({ observedGeneration: _, lastProbeTime: __, ...condition }) => condition);
  return { ...rest, conditions: bare.toSorted((one, other) => one.type.localeCompare(other.type)) };
}
