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
export { announceConfig, announceUnheeded, complaintAbout, withoutHeaderValues } from "./announce.ts";
export { capacitySettingsOf } from "./capacity-settings.ts";
export { certDirOf } from "./cert-directory.ts";
export {
  type ConfigDrift,
  type ConfigReport,
  configDrift,
  configReport,
} from "./config-report.ts";
export { toConfigz } from "./configz.ts";
export {
  configDifferences,
  describeChangeEffect,
  effectOfAll,
  type SettingChange,
} from "./differences.ts";
export { describeOrigin, type EffectiveSetting, effectiveFields, effectiveFlags } from "./effective.ts";
export { type EvictionSettings, type EvictionThreshold, evictionSettingsOf } from "./eviction-settings.ts";
export { findDropIns } from "./files/drop-ins.ts";
export { longestConfigFile } from "./files/parse-file.ts";
export { flagProblems, flagsOf } from "./flags/flags-of.ts";
export { maskedFlags } from "./flags/masked-flags.ts";
export { readRunOnceArgs } from "./flags/run-once-flags.ts";
export { laterGateNames } from "./gates/gate-table-later.ts";
export { mayChangeHost } from "./host-settings.ts";
export type { Effect } from "./in-effect.ts";
export type { KubeletConfiguration, NodeAllocatableEnforcement } from "./kubelet-configuration.ts";
export { describeConfigProblem, loadConfig } from "./load.ts";
export { logSettingsOf } from "./log-settings.ts";
export { type ConfigSnapshot, recordingIo, replayingIo } from "./recorded-io.ts";
export { systemIo } from "./system-io.ts";
export {
  type EvictionAmount,
  type EvictionSignal,
  evictionSignals,
  isEvictionSignal,
  parseEvictionThreshold,
} from "./text/eviction-text.ts";
export { parseBool, parseInteger } from "./text/go-text.ts";
export { type HostPort, hostPortText } from "./text/host-port.ts";
export { qosReservedPercent, reservedResources } from "./text/reserved.ts";
export { KUBERNETES_VERSION, NODELET_VERSION } from "./version.ts";
export type { ChangeEffect } from "./when-changed.ts";
