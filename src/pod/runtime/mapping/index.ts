// From pods to what the runtime is told: sandbox and container descriptions, one topic per file.
export { containerConfig } from "./container.ts";
export type {
  ContainerContext,
  ContainerImage,
  CpuAndMemoryPlacement,
  DeviceGrants,
  DnsSettings,
  IdRange,
  KnownServices,
  NodeContext,
  PodVolume,
  ReadConfigMap,
  ReadSecret,
  ResolvConf,
  ResourceSettings,
  SandboxContext,
  SubPathRequest,
  SubPaths,
} from "./context.ts";
export { parseContainerAnnotations, runtimeLabels } from "./labels.ts";
export { linkLegacyLog } from "./logs.ts";
export {
  containerIdOfLegacyLog,
  containerLogDirectory,
  legacyLogName,
  podLogDirectory,
  uidOfLogDirectory,
} from "./paths.ts";
export { readThermalThrottlePaths } from "./proc-paths.ts";
export { readResolvConf } from "./resolv-conf.ts";
export { containerResources, overheadResources, sandboxResources } from "./resources.ts";
export { sandboxConfig } from "./sandbox.ts";
export { swapBytes } from "./swap.ts";
export { normalSysctlName } from "./sysctls.ts";
