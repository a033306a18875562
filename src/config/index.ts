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
export type { GateStage } from "./gate-spec.ts";
export type { GateName } from "./gate-table.ts";
export type { FeatureGates, KnownGate } from "./gates.ts";
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
export { KUBERNETES_VERSION, NODELET_VERSION } from "./version.ts";
