// Pod identity, spec, status, quantities: types and pure functions shared by every part of the agent.

export {
  type AllocatedResources,
  allocate,
  amountIn,
  type ContainerResources,
  changedResources,
  mostLimits,
  type ResizableResource,
  resizableContainers,
  resizableResources,
  withAllocated,
  withAmountsOf,
  withPodLimits,
} from "./allocated.ts";
export { type ApiReference, apiReferences } from "./api-references.ts";
export { apiTime } from "./api-time.ts";
export {
  type CgroupNaming,
  cgroupNamed,
  cgroupParent,
  kubepodsCgroup,
  podCgroup,
  podUidInPath,
  podUidOfCgroup,
  qosCgroup,
} from "./cgroup-names.ts";
export { containerHash, fnv1a32, numbersOf } from "./container-hash.ts";
export {
  minShares,
  quotaOfMilliCpu,
  sharesOfMilliCpu,
  sharesOfWeight,
  weightOfShares,
} from "./cpu-units.ts";
export { beforeShutdown, endedByShutdown, type NodeDecision, takenOffStatus } from "./disruption.ts";
export { podField, resourceField } from "./downward-api.ts";
export type { PodEvent, RecordNodeEvent, RecordPodEvent } from "./events.ts";
export { ExpansionBudget, expand, expandStrictly } from "./expansion.ts";
export { containerGraceSeconds, graceSecondsOf, ownGraceSeconds } from "./grace-period.ts";
export { type ContainerId, isPlainUid, type PodUid, type SandboxId } from "./ids.ts";
export {
  canonicalName,
  defaultPullPolicy,
  ImageNameError,
  type PullPolicy,
  parseImage,
  parseImageReference,
  pullPolicies,
  repositoryOf,
  withDefaultTag,
} from "./image-reference.ts";
export { jsonEqual } from "./json-equal.ts";
export { kernelDefaults } from "./kernel-defaults.ts";
export type * from "./kube/gen/types.ts";
export { decodeManifest, decodeYaml, maxManifestBytes } from "./manifest.ts";
export { locateProblem } from "./manifest-kinds.ts";
export { decodeObject } from "./manifest-schema.ts";
export { named } from "./named.ts";
export {
  allocatableOf,
  type CapacityFacts,
  type CapacitySettings,
  capacityOf,
  type DeviceAmounts,
  isExtended,
  missingResources,
  overReserved,
  type ResourceList,
  withheldFrom,
} from "./node-capacity.ts";
export {
  type ContainerAnnotations,
  listedState,
  newerFirst,
  newestOf,
  type ObservedContainer,
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
  containerNamed,
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
export { type PodChange, type PodSource, type Provisional, podSources } from "./pod-change.ts";
export { defaultPod } from "./pod-defaults.ts";
export { orderedPodIps } from "./pod-ips.ts";
export { type PodLedger, type PodStep, stepSpan } from "./pod-ledger.ts";
export { isPodLevelResource, podLevelAmounts, podResources, sumOfContainers } from "./pod-resources.ts";
export { type ContainerSummary, type PodSummary, summarize } from "./pod-summary.ts";
export { configKeyProblems, validateMetadata, validatePod } from "./pod-validation/index.ts";
export type { PodViewChange } from "./pod-view-change.ts";
export { describeProblem, isError, type Problem, type ProblemKind, ProblemList } from "./problem.ts";
export { type QosClass, qosClassOf } from "./qos.ts";
export { milliUnits, type Nano, parseQuantity, tryParseQuantity, wholeUnits } from "./quantity.ts";
export { canonicalQuantity, formatOf, formatQuantity, type QuantityFormat } from "./quantity-format.ts";
export type { EventReason, ImageReason, RejectionReason, RetryReason, StartReason } from "./reasons.ts";
export { type DueResize, duePodResize, dueResize, type GivenResources } from "./resize-due.ts";
export {
  addAmounts,
  amountsOf,
  hugePageSizeOf,
  hugePagesName,
  hugePageUnit,
  isHugePages,
  type ResourceAmounts,
} from "./resource-list.ts";
export { restartAllTrigger, usesRestartAll } from "./restart-all.ts";
export { mayRestart, restartPolicyOf, restarts, restartsAfter } from "./restart-policy.ts";
export { type RotatedLog, rotatedLogs, rotationStamp } from "./rotated-logs.ts";
export {
  matchesLabelSelector,
  matchesLabels,
  matchesNodeSelector,
  matchesRequirement,
  type SelectableNode,
} from "./selectors.ts";
export { isTerminalPhase } from "./terminal-phase.ts";
export { isTolerated } from "./tolerations.ts";
