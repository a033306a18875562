// Pod identity, spec, status, quantities: types and pure functions shared by every part of the agent.
export type { PodEvent, RecordNodeEvent, RecordPodEvent } from "./events.ts";
export type { ContainerId, PodUid, SandboxId } from "./ids.ts";
export { jsonEqual } from "./json-equal.ts";
export type * from "./kube/gen/types.ts";
export {
  type ContainerAnnotations,
  newestOf,
  type ObservedContainer,
  type ObservedMount,
  type ObservedPod,
  type ObservedResources,
  type ObservedSandbox,
} from "./observed.ts";
export {
  type ContainerKind,
  configHashAnnotation,
  configMirrorAnnotation,
  configSeenAnnotation,
  configSourceAnnotation,
  containersOf,
  describePod,
  fieldPathOf,
  fullName,
  type IdentifiedPod,
  isCriticalPod,
  isMirrorPod,
  isSidecar,
  isStaticPod,
  type PodContainer,
  uidOf,
} from "./pod.ts";
export { milliUnits, type Nano, parseQuantity, QuantityError, tryParseQuantity, wholeUnits } from "./quantity.ts";
