// The Node object: registration, status with its conditions, lease, and what belongs to it.

export { CsiNodeKeeper } from "./csi-node/csi-node-keeper.ts";
export { KnownNode, type NodeKnowledge } from "./known-node.ts";
export { NodeKeeper } from "./node-keeper.ts";
export { OwnNode } from "./own-node.ts";
export type { NetworkFacts, NodeConfigFacts, NodeFacts, RuntimeFacts } from "./ports.ts";
export { newNode } from "./registration/node-object.ts";
export { ResourceSlices } from "./resource-slices.ts";
export { type NodeSettings, nodeSettingsOf } from "./settings.ts";
export { memoryMayReachDisk, oldCgroups } from "./start-warnings.ts";
export { systemNetwork } from "./system-facts.ts";
