import { table } from "../../../ground/base/index.ts";
/** Times that upstream shows as null when they are not set, by type; all others are left out. */
export const shownTimes: Readonly<Record<string, readonly string[]>> = table({
  "core.v1.PodCondition": ["lastProbeTime", "lastTransitionTime"],
  "core.v1.NodeCondition": ["lastHeartbeatTime", "lastTransitionTime"],
  "core.v1.ContainerStateRunning": ["startedAt"],
  "core.v1.ContainerStateTerminated": ["startedAt", "finishedAt"],
  "core.v1.Event": ["firstTimestamp", "lastTimestamp", "eventTime"],
});
