// Builds every part of the agent once, connects them, starts and stops them in stages.
export { type AgentParts, type PodEngine, startPods } from "./pods.ts";
export { type AgentSurroundings, runAgent } from "./run-agent.ts";
export type { ServiceEnvironment } from "./service-manager.ts";
