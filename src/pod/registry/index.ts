// The pods that are wanted on this node, and whether the node takes them.
export { Admission, type AdmissionHandler, type AdmissionVerdict } from "./admission.ts";
export {
  appArmorHandler,
  groupsPolicyHandler,
  hostPortsHandler,
  osHandler,
  sysctlHandler,
} from "./admission-handlers.ts";
export { type JudgingNode, nodeFitHandler } from "./admission-node-fit.ts";
export { isMirrorOf, MirrorPods } from "./mirror-pods.ts";
export { PodRegistry, type RegistryPorts } from "./registry.ts";
