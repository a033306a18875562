// Sandboxes and containers: how they are described to the runtime, and what is observed of them.

export { ContainerGc, type ContainerGcPorts, type ContainerGcSettings } from "./container-gc.ts";
export { ContainerRemoval, type RemovableContainer } from "./container-removal.ts";
export { execThrough } from "./exec.ts";
export { killAfterFailedHook } from "./failed-hook.ts";
export { followHints } from "./hint-feed.ts";
export { type HookPorts, LifecycleHooks } from "./hooks.ts";
export { ContainerKiller, type KillPorts } from "./kill.ts";
export type { LogDirectories } from "./log-cleanup.ts";
export { type LoggedContainer, LogRotation, type LogRotationSettings } from "./log-rotation-loop.ts";
export {
  type AllocateIds,
  type ContainerContext,
  containerConfig,
  type DnsSettings,
  type KnownServices,
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
  type SandboxContext,
  type SubPathRequest,
  type SubPaths,
  sandboxConfig,
} from "./mapping/index.ts";
export { NodeIps } from "./node-ips.ts";
export { PodObserver } from "./observer.ts";
export { podRemoval } from "./pod-removal.ts";
export { PruningObserver } from "./pruning-observer.ts";
export { Relist } from "./relist.ts";
export { nextRestartCount } from "./restart-count.ts";
export { RuntimeStatus } from "./runtime-status.ts";
export { type StartContextPorts, StartContexts } from "./start-contexts.ts";
export { StartError } from "./start-error.ts";
export { ContainerStarter, type StartContainerRequest, type StarterPorts, type StartReport } from "./starter.ts";
export { translateContainer, translateSandbox } from "./translate.ts";
export { defaultUserIdPool, type UserIdPool, UserIds } from "./user-ids.ts";
