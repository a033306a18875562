// Sandboxes and containers: how they are described to the runtime, and what is observed of them.

export { ContainerGc } from "./container-gc.ts";
export { ContainerKiller } from "./container-killer.ts";
export { ContainerRemoval } from "./container-removal.ts";
export {
  ContainerStarter,
  type StartContainerRequest,
  type StarterPorts,
  type StartReport,
} from "./container-starter.ts";
export { execThrough } from "./exec-sync.ts";
export { killAfterFailedHook } from "./failed-hook.ts";
export { followRuntimeEvents } from "./follow-runtime-events.ts";
export { hostDnsReader } from "./host-dns.ts";
export { knownServices } from "./known-services.ts";
export { LifecycleHooks } from "./lifecycle-hooks.ts";
export { LogRotation } from "./log-rotation.ts";
export { logRotationSettings } from "./log-rotation-settings.ts";
export {
  type ContainerContext,
  type CpuAndMemoryPlacement,
  containerConfig,
  containerResources,
  type DeviceGrants,
  type DnsSettings,
  linkLegacyLog,
  type NodeContext,
  normalSysctlName,
  type PodVolume,
  parseContainerAnnotations,
  podLogDirectory,
  type ReadConfigMap,
  type ReadSecret,
  type ResolvConf,
  readResolvConf,
  readThermalThrottlePaths,
  runtimeLabels,
  type SubPathRequest,
  type SubPaths,
  sandboxConfig,
  swapBytes,
} from "./mapping/index.ts";
export { NodeIps } from "./node-ips.ts";
export { PodObserver } from "./observer.ts";
export { PodCidrs } from "./pod-cidrs.ts";
export { podRemoval } from "./pod-removal.ts";
export { PruningObserver } from "./pruning-observer.ts";
export { Relist } from "./relist.ts";
export { nextRestartCount } from "./restart-count.ts";
export { runtimeHandlers } from "./runtime-handlers.ts";
export { RuntimeStatus } from "./runtime-health.ts";
export { type StartContextPorts, StartContexts } from "./start-contexts.ts";
export { StartError } from "./start-error.ts";
export { translateContainer, translateSandbox } from "./translate.ts";
export { ContainerUpdates } from "./update-container.ts";
export { defaultUserIdPool, UserIds } from "./user-ids.ts";
