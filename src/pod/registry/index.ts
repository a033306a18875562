// The pods that are wanted on this node, and whether the node takes them.

export { Admission, type AdmissionHandler, type AdmissionVerdict, type Objection } from "./admission.ts";
export { deviceHandler } from "./admission-devices.ts";
export {
  appArmorHandler,
  groupsPolicyHandler,
  osHandler,
  podLevelHandler,
  shutdownHandler,
} from "./admission-handlers.ts";
export { hostNamespaceHandler } from "./admission-host-namespaces.ts";
export { clashingHostPorts, hostPortsHandler } from "./admission-host-ports.ts";
export { type JudgingNode, nodeFitHandler, rivalsOf } from "./admission-node-fit.ts";
export { placementHandler } from "./admission-placement.ts";
export { pressureHandler } from "./admission-pressure.ts";
export { sysctlHandler } from "./admission-sysctls.ts";
export { arePodsKnown, PodIntake } from "./intake.ts";
export { isLacking, type ResourceSum, resourceSums } from "./lacking-resources.ts";
export { isMirrorOf, MirrorPods } from "./mirror-pods.ts";
export { followMirrors } from "./mirror-wakes.ts";
export { OrphanedPods } from "./orphaned-pods.ts";
export { podsInUse } from "./pods-in-use.ts";
export { preempter } from "./preemption.ts";
export { type ForeseenDecision, PodRegistry } from "./registry.ts";
export type { ResizeSettings } from "./resize-decision.ts";
export { WantedPods } from "./wanted-pods.ts";
