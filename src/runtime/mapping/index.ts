// From pods to what the runtime is told: sandbox and container descriptions, one topic per file.
export { containerConfig } from "./container.ts";
export * from "./context.ts";
export type { Notice } from "./dns.ts";
export { ConfigError, ContainerConfigError } from "./errors.ts";
export { parseContainerAnnotations, runtimeLabels } from "./labels.ts";
export { type LegacyLogSettings, linkLegacyLog, nextRestartCount, type StartedContainer } from "./logs.ts";
export {
  containerIdOfLegacyLog,
  containerLogDirectory,
  legacyLogName,
  podDirectory,
  podLogDirectory,
  uidOfLogDirectory,
} from "./paths.ts";
export { readThermalThrottlePaths } from "./proc-paths.ts";
export { readResolvConf, resolvConfProblem } from "./resolv-conf.ts";
export { containerResources } from "./resources.ts";
export { type SandboxDescription, sandboxConfig } from "./sandbox.ts";
export { normalSysctlName } from "./sysctls.ts";
