// Flags and KubeletConfiguration files in, one validated and frozen AgentConfig out. Nothing else reads argv or files.
export type {
  AgentConfig,
  ConfigIo,
  ConfigProblem,
  ConfigWarning,
  DirEntry,
  InvalidConfig,
  KubeletFlags,
  LoadResult,
  Origin,
} from "./agent-config.ts";
export { capacitySettingsOf } from "./capacity-settings.ts";
export { toConfigz } from "./configz.ts";
export { describeOrigin, type EffectiveSetting, effectiveFields, effectiveFlags } from "./effective.ts";
export { maskedFlags } from "./flags/masked-flags.ts";
export type { GateStage } from "./gates/gate-spec.ts";
export type { GateName } from "./gates/gate-table.ts";
export type { FeatureGates, KnownGate } from "./gates/gates.ts";
export type { Effect } from "./in-effect.ts";
export type {
  ImagePullCredentialsVerificationPolicy,
  KubeletAuthentication,
  KubeletAuthorization,
  KubeletConfiguration,
  LoggingConfiguration,
  LogOutputOptions,
  MemoryReservation,
  NodeAllocatableEnforcement,
  ShutdownGracePeriodByPodPriority,
  TlsVersion,
  TracingConfiguration,
  UserNamespaces,
  VModuleItem,
} from "./kubelet-configuration.ts";
export { describeProblem, loadConfig } from "./load.ts";
export { systemIo } from "./system-io.ts";
export { type ReservedResources, reservedResources } from "./text/reserved.ts";
export { KUBERNETES_VERSION, NODELET_VERSION } from "./version.ts";
