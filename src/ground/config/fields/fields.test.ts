import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryIo } from "../../../../test/support/config-io.ts";
import { nodeSamples } from "../../../../test/support/field-samples/node.ts";
import { resourcesSamples } from "../../../../test/support/field-samples/resources.ts";
import { runtimeSamples } from "../../../../test/support/field-samples/runtime.ts";
import { testFields } from "../../../../test/support/field-samples/sample.ts";
import { serverSamples } from "../../../../test/support/field-samples/server.ts";
import { signalsSamples } from "../../../../test/support/field-samples/signals.ts";
import { configOf, loadFile } from "../../../../test/support/load-config.ts";
import type { KubeletConfiguration } from "../kubelet-configuration.ts";
import { loadConfig } from "../load.ts";
import { fieldPaths } from "./fields.ts";

const logOptions = { splitStream: false, infoBufferSize: "0" };

/** What a configuration file gets that sets nothing. */
const fileDefaults: KubeletConfiguration = {
  enableServer: true,
  staticPodPath: "",
  podLogsDir: "/var/log/pods",
  syncFrequencyMs: 60_000,
  fileCheckFrequencyMs: 20_000,
  httpCheckFrequencyMs: 20_000,
  staticPodURL: "",
  staticPodURLHeader: {},
  address: "0.0.0.0",
  port: 10250,
  readOnlyPort: 0,
  tlsCertFile: "",
  tlsPrivateKeyFile: "",
  tlsCipherSuites: [],
  tlsMinVersion: "",
  rotateCertificates: false,
  serverTLSBootstrap: false,
  authentication: {
    x509: { clientCAFile: "" },
    webhook: { enabled: true, cacheTTLMs: 120_000 },
    anonymous: { enabled: false },
  },
  authorization: {
    mode: "Webhook",
    webhook: { cacheAuthorizedTTLMs: 300_000, cacheUnauthorizedTTLMs: 30_000 },
  },
  registryPullQPS: 5,
  registryBurst: 10,
  imagePullCredentialsVerificationPolicy: "",
  preloadedImagesVerificationAllowlist: [],
  eventRecordQPS: 50,
  eventBurst: 100,
  enableDebuggingHandlers: true,
  enableContentionProfiling: false,
  healthzPort: 10248,
  healthzBindAddress: "127.0.0.1",
  oomScoreAdj: -999,
  clusterDomain: "",
  clusterDNS: [],
  streamingConnectionIdleTimeoutMs: 14_400_000,
  nodeStatusUpdateFrequencyMs: 10_000,
  nodeStatusReportFrequencyMs: 300_000,
  nodeLeaseDurationSeconds: 40,
  imageMinimumGCAgeMs: 120_000,
  imageMaximumGCAgeMs: 0,
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  volumeStatsAggPeriodMs: 60_000,
  kubeletCgroups: "",
  systemCgroups: "",
  cgroupRoot: "",
  cgroupsPerQOS: true,
  cgroupDriver: "cgroupfs",
  cpuManagerPolicy: "none",
  singleProcessOOMKill: undefined,
  cpuManagerPolicyOptions: {},
  cpuManagerReconcilePeriodMs: 10_000,
  memoryManagerPolicy: "None",
  topologyManagerPolicy: "none",
  topologyManagerScope: "container",
  topologyManagerPolicyOptions: {},
  qosReserved: {},
  runtimeRequestTimeoutMs: 120_000,
  hairpinMode: "promiscuous-bridge",
  maxPods: 110,
  podCIDR: "",
  podPidsLimit: -1,
  resolvConf: "/etc/resolv.conf",
  runOnce: false,
  cpuCFSQuota: true,
  cpuCFSQuotaPeriodMs: 100,
  nodeStatusMaxImages: 50,
  maxOpenFiles: 1_000_000,
  contentType: "application/vnd.kubernetes.protobuf",
  kubeAPIQPS: 50,
  kubeAPIBurst: 100,
  serializeImagePulls: true,
  maxParallelImagePulls: undefined,
  evictionHard: {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
  },
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  evictionPressureTransitionPeriodMs: 300_000,
  evictionMaxPodGracePeriod: 0,
  evictionMinimumReclaim: {},
  mergeDefaultEvictionSettings: false,
  podsPerCore: 0,
  enableControllerAttachDetach: true,
  protectKernelDefaults: false,
  makeIPTablesUtilChains: true,
  iptablesMasqueradeBit: 14,
  iptablesDropBit: 15,
  featureGates: {},
  failSwapOn: true,
  memorySwap: { swapBehavior: "" },
  containerLogMaxSize: "10Mi",
  containerLogMaxFiles: 5,
  containerLogMaxWorkers: 1,
  containerLogMonitorIntervalMs: 10_000,
  configMapAndSecretChangeDetectionStrategy: "Watch",
  systemReserved: {},
  kubeReserved: {},
  reservedSystemCPUs: "",
  showHiddenMetricsForVersion: "",
  systemReservedCgroup: "",
  kubeReservedCgroup: "",
  enforceNodeAllocatable: ["pods"],
  allowedUnsafeSysctls: [],
  volumePluginDir: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/",
  providerID: "",
  kernelMemcgNotification: false,
  logging: {
    format: "text",
    flushFrequencyMs: 5_000,
    verbosity: 0,
    vmodule: [],
    options: { text: logOptions, json: logOptions },
  },
  enableSystemLogHandler: true,
  enableSystemLogQuery: false,
  shutdownGracePeriodMs: 0,
  shutdownGracePeriodCriticalPodsMs: 0,
  shutdownGracePeriodByPodPriority: [],
  crashLoopBackOff: { maxContainerRestartPeriodMs: undefined },
  reservedMemory: [],
  enableProfilingHandler: true,
  enableDebugFlagsHandler: true,
  seccompDefault: false,
  memoryThrottlingFactor: 0.9,
  registerWithTaints: [],
  registerNode: true,
  tracing: undefined,
  localStorageCapacityIsolation: true,
  containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
  imageServiceEndpoint: "",
  failCgroupV1: false,
  userNamespaces: undefined,
};

/** Where a start without --config differs. */
const legacyDefaults: KubeletConfiguration = {
  ...fileDefaults,
  authentication: {
    ...fileDefaults.authentication,
    webhook: { enabled: false, cacheTTLMs: 120_000 },
    anonymous: { enabled: true },
  },
  authorization: { ...fileDefaults.authorization, mode: "AlwaysAllow" },
  readOnlyPort: 10255,
  evictionHard: {},
};

test("the configuration has 123 fields", () => {
  assert.equal(Object.keys(fileDefaults).length, 123);
  assert.equal(new Set(fieldPaths.map((path) => path.split(".")[0])).size, 123);
});

test("a file that sets nothing gets the file defaults", async () => {
  assert.deepEqual(configOf(await loadFile("")).kubelet, fileDefaults);
});

test("a start without files gets the legacy defaults", async () => {
  assert.deepEqual(configOf(await loadConfig([], memoryIo())).kubelet, legacyDefaults);
});

test("with only an empty --config-dir the legacy defaults stay", async () => {
  const io = memoryIo({ "/etc/conf.d/README": "no drop-in" });
  assert.deepEqual(configOf(await loadConfig(["--config-dir=/etc/conf.d"], io)).kubelet, legacyDefaults);
});

testFields({ ...serverSamples, ...nodeSamples, ...runtimeSamples, ...resourcesSamples, ...signalsSamples });
