// Which devices, CPUs, memory and claims the containers of this node have, over gRPC.
export type { PodResourcesPorts } from "./ports.ts";
export { servePodResources } from "./service.ts";
