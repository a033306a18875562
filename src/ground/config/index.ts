// Flags and KubeletConfiguration files in, one validated and frozen AgentConfig out. Nothing else reads argv or files.
export type {
  AgentConfig,
  ConfigIo,
  ConfigProblem,
  ConfigWarning,
  DirEntry,
  InvalidConfig,
  LoadResult,
  Origin,
} from "./agent-config.ts";
export { announceConfig, announceUnheeded, complaintAbout, withoutHeaderValues } from "./announce.ts";
export { capacitySettingsOf } from "./capacity-settings.ts";
export { certDirOf } from "./cert-directory.ts";
export { toConfigz } from "./configz.ts";
export { describeOrigin, type EffectiveSetting, effectiveFields, effectiveFlags } from "./effective.ts";
export { type EvictionSettings, type EvictionThreshold, evictionSettingsOf } from "./eviction-settings.ts";
export { maskedFlags } from "./flags/masked-flags.ts";
export { readRunOnceArgs } from "./flags/run-once-flags.ts";
export { laterGateNames } from "./gates/gate-table-later.ts";
export type { Effect } from "./in-effect.ts";
export type { KubeletConfiguration, NodeAllocatableEnforcement } from "./kubelet-configuration.ts";
export { describeConfigProblem, loadConfig } from "./load.ts";
export { logSettingsOf } from "./log-settings.ts";
export { systemIo } from "./system-io.ts";
export {
  type EvictionAmount,
  type EvictionSignal,
  evictionSignals,
  isEvictionSignal,
  parseEvictionThreshold,
} from "./text/eviction-text.ts";
export { parseBool, parseInteger } from "./text/go-text.ts";
export { qosReservedPercent, reservedResources } from "./text/reserved.ts";
export { KUBERNETES_VERSION, NODELET_VERSION } from "./version.ts";
