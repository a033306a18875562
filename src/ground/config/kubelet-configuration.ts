import type { Taint } from "../model/index.ts";

/**
 * The effective KubeletConfiguration: every default filled in, every value checked. Names are those of the v1beta1
 * file, except that a duration carries its unit: `syncFrequency: 1m` is `syncFrequencyMs: 60000` here.
 * Undefined is left only where "not set" means something of its own.
 */
export interface KubeletConfiguration {
  readonly enableServer: boolean;
  /** File or directory of static pods; empty for none. */
  readonly staticPodPath: string;
  readonly podLogsDir: string;
  readonly syncFrequencyMs: number;
  readonly fileCheckFrequencyMs: number;
  readonly httpCheckFrequencyMs: number;
  readonly staticPodURL: string;
  readonly staticPodURLHeader: Readonly<Record<string, readonly string[]>>;
  readonly address: string;
  readonly port: number;
  /** 0 is off. */
  readonly readOnlyPort: number;
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  readonly tlsCipherSuites: readonly string[];
  /** Empty means VersionTLS12. */
  readonly tlsMinVersion: TlsVersion;
  readonly rotateCertificates: boolean;
  readonly serverTLSBootstrap: boolean;
  readonly authentication: KubeletAuthentication;
  readonly authorization: KubeletAuthorization;
  /** 0 is unlimited. */
  readonly registryPullQPS: number;
  readonly registryBurst: number;
  /** Empty unless the gate KubeletEnsureSecretPulledImages is on. */
  readonly imagePullCredentialsVerificationPolicy: ImagePullCredentialsVerificationPolicy;
  readonly preloadedImagesVerificationAllowlist: readonly string[];
  /** 0 means the client library's 5, not unlimited. */
  readonly eventRecordQPS: number;
  readonly eventBurst: number;
  readonly enableDebuggingHandlers: boolean;
  readonly enableContentionProfiling: boolean;
  /** 0 is off. */
  readonly healthzPort: number;
  readonly healthzBindAddress: string;
  readonly oomScoreAdj: number;
  readonly clusterDomain: string;
  readonly clusterDNS: readonly string[];
  /** Accepted, without effect. */
  readonly streamingConnectionIdleTimeoutMs: number;
  readonly nodeStatusUpdateFrequencyMs: number;
  readonly nodeStatusReportFrequencyMs: number;
  readonly nodeLeaseDurationSeconds: number;
  readonly imageMinimumGCAgeMs: number;
  /** 0 is off. */
  readonly imageMaximumGCAgeMs: number;
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  /** Negative disables volume statistics. */
  readonly volumeStatsAggPeriodMs: number;
  readonly kubeletCgroups: string;
  readonly systemCgroups: string;
  readonly cgroupRoot: string;
  readonly cgroupsPerQOS: boolean;
  /** As configured; the answer of the runtime overrides it. */
  readonly cgroupDriver: string;
  readonly cpuManagerPolicy: "none" | "static";
  /** Undefined: true on cgroup v1, false on v2. */
  readonly singleProcessOOMKill: boolean | undefined;
  readonly cpuManagerPolicyOptions: Readonly<Record<string, string>>;
  readonly cpuManagerReconcilePeriodMs: number;
  readonly memoryManagerPolicy: "None" | "Static";
  readonly topologyManagerPolicy: "none" | "best-effort" | "restricted" | "single-numa-node";
  readonly topologyManagerScope: "container" | "pod";
  readonly topologyManagerPolicyOptions: Readonly<Record<string, string>>;
  readonly qosReserved: Readonly<Record<string, string>>;
  readonly runtimeRequestTimeoutMs: number;
  /** Accepted, without effect with a CRI runtime. */
  readonly hairpinMode: "promiscuous-bridge" | "hairpin-veth" | "none";
  readonly maxPods: number;
  readonly podCIDR: string;
  /** -1 is no limit. */
  readonly podPidsLimit: number;
  /** Empty means none: pods inherit no resolver configuration of the host. */
  readonly resolvConf: string;
  readonly runOnce: false;
  readonly cpuCFSQuota: boolean;
  readonly cpuCFSQuotaPeriodMs: number;
  /** -1 is no cap. */
  readonly nodeStatusMaxImages: number;
  readonly maxOpenFiles: number;
  readonly contentType: string;
  /** 0 means the client library's 5, not unlimited. */
  readonly kubeAPIQPS: number;
  readonly kubeAPIBurst: number;
  readonly serializeImagePulls: boolean;
  /** Undefined is no limit. */
  readonly maxParallelImagePulls: number | undefined;
  /** Signal to threshold, as written; see parseEvictionThreshold. */
  readonly evictionHard: Readonly<Record<string, string>>;
  readonly evictionSoft: Readonly<Record<string, string>>;
  /** Signal to Go duration, as written. */
  readonly evictionSoftGracePeriod: Readonly<Record<string, string>>;
  readonly evictionPressureTransitionPeriodMs: number;
  /** Seconds; negative means the pod's own grace period. */
  readonly evictionMaxPodGracePeriod: number;
  readonly evictionMinimumReclaim: Readonly<Record<string, string>>;
  readonly mergeDefaultEvictionSettings: boolean;
  /** 0 is no limit. */
  readonly podsPerCore: number;
  readonly enableControllerAttachDetach: boolean;
  readonly protectKernelDefaults: boolean;
  readonly makeIPTablesUtilChains: boolean;
  readonly iptablesMasqueradeBit: number;
  readonly iptablesDropBit: number;
  /** Files and flags merged; ask `AgentConfig.gates` rather than this map. */
  readonly featureGates: Readonly<Record<string, boolean>>;
  readonly failSwapOn: boolean;
  readonly memorySwap: { readonly swapBehavior: "" | "NoSwap" | "LimitedSwap" };
  /** A quantity, as written; negative disables rotation. */
  readonly containerLogMaxSize: string;
  readonly containerLogMaxFiles: number;
  readonly containerLogMaxWorkers: number;
  readonly containerLogMonitorIntervalMs: number;
  readonly configMapAndSecretChangeDetectionStrategy: "Get" | "Cache" | "Watch";
  /** Resource to quantity, as written. */
  readonly systemReserved: Readonly<Record<string, string>>;
  readonly kubeReserved: Readonly<Record<string, string>>;
  /** A cpuset such as "0-1,4"; empty for none. */
  readonly reservedSystemCPUs: string;
  readonly showHiddenMetricsForVersion: string;
  readonly systemReservedCgroup: string;
  readonly kubeReservedCgroup: string;
  readonly enforceNodeAllocatable: readonly NodeAllocatableEnforcement[];
  readonly allowedUnsafeSysctls: readonly string[];
  readonly volumePluginDir: string;
  readonly providerID: string;
  readonly kernelMemcgNotification: boolean;
  readonly logging: LoggingConfiguration;
  readonly enableSystemLogHandler: boolean;
  readonly enableSystemLogQuery: boolean;
  readonly shutdownGracePeriodMs: number;
  readonly shutdownGracePeriodCriticalPodsMs: number;
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownGracePeriodByPodPriority[];
  /** Undefined unless the gate KubeletCrashLoopBackOffMax is on. */
  readonly crashLoopBackOff: { readonly maxContainerRestartPeriodMs: number | undefined };
  readonly reservedMemory: readonly MemoryReservation[];
  readonly enableProfilingHandler: boolean;
  readonly enableDebugFlagsHandler: boolean;
  readonly seccompDefault: boolean;
  readonly memoryThrottlingFactor: number;
  readonly registerWithTaints: readonly Taint[];
  readonly registerNode: boolean;
  /** Undefined is no tracing. */
  readonly tracing: TracingConfiguration | undefined;
  readonly localStorageCapacityIsolation: boolean;
  readonly containerRuntimeEndpoint: string;
  /** Empty means the runtime endpoint. */
  readonly imageServiceEndpoint: string;
  readonly failCgroupV1: boolean;
  readonly userNamespaces: UserNamespaces | undefined;
}

export type TlsVersion = "" | "VersionTLS10" | "VersionTLS11" | "VersionTLS12" | "VersionTLS13";

export type ImagePullCredentialsVerificationPolicy =
  | ""
  | "NeverVerify"
  | "NeverVerifyPreloadedImages"
  | "NeverVerifyAllowlistedImages"
  | "AlwaysVerify";

export type NodeAllocatableEnforcement =
  | "none"
  | "pods"
  | "system-reserved"
  | "system-reserved-compressible"
  | "kube-reserved"
  | "kube-reserved-compressible";

export interface KubeletAuthentication {
  readonly x509: { readonly clientCAFile: string };
  readonly webhook: { readonly enabled: boolean; readonly cacheTTLMs: number };
  readonly anonymous: { readonly enabled: boolean };
}

export interface KubeletAuthorization {
  readonly mode: "AlwaysAllow" | "Webhook";
  readonly webhook: { readonly cacheAuthorizedTTLMs: number; readonly cacheUnauthorizedTTLMs: number };
}

export interface LoggingConfiguration {
  readonly format: "text" | "json";
  readonly flushFrequencyMs: number;
  readonly verbosity: number;
  readonly vmodule: readonly VModuleItem[];
  readonly options: { readonly text: LogOutputOptions; readonly json: LogOutputOptions };
}

export interface VModuleItem {
  readonly filePattern: string;
  readonly verbosity: number;
}

export interface LogOutputOptions {
  readonly splitStream: boolean;
  /** A quantity, as written; "0" is unbuffered. */
  readonly infoBufferSize: string;
}

export interface ShutdownGracePeriodByPodPriority {
  readonly priority: number;
  readonly shutdownGracePeriodSeconds: number;
}

export interface MemoryReservation {
  readonly numaNode: number;
  /** "memory" or "hugepages-<size>" to quantity. */
  readonly limits: Readonly<Record<string, string>>;
}

export interface TracingConfiguration {
  /** Undefined means localhost:4317. */
  readonly endpoint: string | undefined;
  /** Undefined: follow the caller's sampling decision, sample nothing of our own. */
  readonly samplingRatePerMillion: number | undefined;
}

export interface UserNamespaces {
  /** Undefined means 65536. */
  readonly idsPerPod: number | undefined;
}
