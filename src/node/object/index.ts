// The Node object: registration, status with its conditions, lease, and what belongs to it.
export { NodeKeeper, type NodeKeeperPorts } from "./keeper.ts";
export { KnownNode, type KnownNodePorts, type NodeKnowledge } from "./known-node.ts";
export { OwnNode } from "./own-node.ts";
export type { DeviceFacts, NetworkFacts, NodeFacts, RuntimeFacts } from "./ports.ts";
export { newNode } from "./registration/node-object.ts";
export { nodeObjects } from "./registration/node-objects.ts";
export { type NodeSettings, nodeSettingsOf } from "./settings.ts";
export { systemNetwork } from "./system-facts.ts";
