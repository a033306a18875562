import type { RecordNodeEvent } from "../../ground/model/index.ts";

type NodeEvent = Parameters<RecordNodeEvent>[0];

// What a Node is said to lack when its agent starts, in the kubelet's words: people and tools know them.

export const oldCgroups: NodeEvent = {
  type: "Warning",
  reason: "CgroupV1",
  message: "cgroup v1 support is in maintenance mode, please migrate to cgroup v2",
};

export const memoryMayReachDisk: NodeEvent = {
  type: "Warning",
  reason: "PossibleMemoryBackedVolumesOnDisk",
  message:
    "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) might be swapped " +
    "to disk and should no longer be considered secure.",
};
