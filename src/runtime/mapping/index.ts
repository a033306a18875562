// From pods to what the runtime is told: sandbox and container descriptions, one topic per file.
export { containerConfig } from "./container.ts";
export * from "./context.ts";
export type { Notice, PodDns } from "./dns.ts";
export { podDns } from "./dns.ts";
export { type ContainerEnv, containerEnv } from "./env.ts";
export { ConfigError, ContainerConfigError } from "./errors.ts";
export { kernelHostname, type PodHostname, podHostname } from "./hostname.ts";
export { managedHosts, nodeHosts, writeHostsFile } from "./hosts-file.ts";
export { parseContainerAnnotations, runtimeLabels } from "./labels.ts";
export { type LegacyLogSettings, linkLegacyLog, nextRestartCount, type StartedContainer } from "./logs.ts";
export { isRecursivelyReadOnly } from "./mounts.ts";
export { oomScoreAdj } from "./oom-score.ts";
export {
  containerDirectory,
  containerIdOfLegacyLog,
  containerLogDirectory,
  containerLogPath,
  hostsFilePath,
  legacyLogName,
  podDirectory,
  podLogDirectory,
  uidOfLogDirectory,
} from "./paths.ts";
export { readThermalThrottlePaths } from "./proc-paths.ts";
export { parseResolvConf, readResolvConf, resolvConfProblem } from "./resolv-conf.ts";
export { containerResources, overheadResources, sandboxResources } from "./resources.ts";
export { type SandboxDescription, sandboxConfig } from "./sandbox.ts";
export { serviceEnv } from "./service-env.ts";
export { stopSignalName } from "./stop-signal.ts";
export { normalSysctlName } from "./sysctls.ts";
