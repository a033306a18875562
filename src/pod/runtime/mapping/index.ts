// From pods to what the runtime is told: sandbox and container descriptions, one topic per file.
export { containerConfig } from "./container.ts";
export {
  type AllocateIds,
  anywhere,
  type ContainerContext,
  type ContainerImage,
  type DnsSettings,
  type IdRange,
  type KnownServices,
  type NodeContext,
  noDeviceGrants,
  type PodVolume,
  type ReadConfigMap,
  type ReadSecret,
  type ResolvConf,
  type SandboxContext,
  type SubPathRequest,
  type SubPaths,
} from "./context.ts";
export type { Notice } from "./dns.ts";
export { parseContainerAnnotations, runtimeLabels } from "./labels.ts";
export { type LegacyLogSettings, linkLegacyLog, type StartedContainer } from "./logs.ts";
export {
  containerIdOfLegacyLog,
  containerLogDirectory,
  legacyLogName,
  podLogDirectory,
  uidOfLogDirectory,
} from "./paths.ts";
export { readThermalThrottlePaths } from "./proc-paths.ts";
export { readResolvConf } from "./resolv-conf.ts";
export { type SandboxDescription, sandboxConfig } from "./sandbox.ts";
export { normalSysctlName } from "./sysctls.ts";
