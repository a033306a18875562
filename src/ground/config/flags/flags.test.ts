import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryIo } from "../../../../test/support/config-io.ts";
import { configOf, problemsOf } from "../../../../test/support/load-config.ts";
import type { AgentConfig, KubeletFlags } from "../agent-config.ts";
import { valueAt } from "../candidate.ts";
import type { FieldPath } from "../fields/fields.ts";
import { loadConfig } from "../load.ts";
import { flagTable } from "./flag-table.ts";

/** A value for the flag, the field or flag-only setting it ends up in, what it is there, and the default as text. */
type Row = readonly [given: string, lands: FieldPath | keyof KubeletFlags | "", expected: unknown, fallback: string];

const minute = 60_000;

// Some values are only allowed together with another flag.
const besides: Readonly<Record<string, readonly string[]>> = {
  "authentication-token-webhook": ["--kubeconfig=/k"],
  "authorization-mode": ["--kubeconfig=/k"],
  "cgroups-per-qos": ["--enforce-node-allocatable=none"],
  "cpu-cfs-quota-period": ["--feature-gates=CustomCPUCFSQuotaPeriod=true"],
  "cpu-manager-policy": ["--reserved-cpus=0"],
  "cpu-manager-policy-options": ["--cpu-manager-policy=static", "--reserved-cpus=0"],
  "dynamic-config-map": ["--dynamic-config-dir=/d", "--kubeconfig=/k"],
  "enforce-node-allocatable": ["--kube-reserved-cgroup=/kube"],
  "eviction-soft": ["--eviction-soft-grace-period=memory.available=1m"],
  "exit-on-lock-contention": ["--lock-file=/run/lock"],
  "image-gc-high-threshold": ["--image-gc-low-threshold=1"],
  "log-json-info-buffer-size": ["--feature-gates=LoggingAlphaOptions=true"],
  "log-json-split-stream": ["--feature-gates=LoggingAlphaOptions=true"],
  "log-text-info-buffer-size": ["--feature-gates=LoggingAlphaOptions=true"],
  "log-text-split-stream": ["--feature-gates=LoggingAlphaOptions=true"],
  "system-cgroups": ["--cgroup-root=/"],
  "tls-cert-file": ["--tls-private-key-file=/key"],
  "tls-private-key-file": ["--tls-cert-file=/cert"],
};

const rows: Readonly<Record<string, Row>> = {
  // Flag-only
  config: ["", "configFile", "", ""],
  "config-dir": ["", "configDir", "", ""],
  "dynamic-config-dir": ["/d", "dynamicConfigDir", "/d", ""],
  "dynamic-config-map": ["ns/name", "dynamicConfigMap", "ns/name", ""],
  "dynamic-config-trial": ["2m", "dynamicConfigTrialMs", 2 * minute, "10m0s"],
  kubeconfig: ["/k", "kubeconfig", "/k", ""],
  "bootstrap-kubeconfig": ["/b", "bootstrapKubeconfig", "/b", ""],
  "hostname-override": ["Host", "hostnameOverride", "Host", ""],
  "node-ip": ["10.0.0.1, fd00::1", "nodeIPs", ["10.0.0.1", "fd00::1"], ""],
  "cert-dir": ["/pki", "certDir", "/pki", "/var/lib/kubelet/pki"],
  "cloud-provider": ["external", "cloudProvider", "external", ""],
  "cloud-instance": ["/opt/ask-cloud", "cloudInstance", "/opt/ask-cloud", ""],
  "root-dir": ["/root-dir", "rootDir", "/root-dir", "/var/lib/kubelet"],
  "seccomp-default": ["true", "seccompDefault", true, "false"],
  "node-labels": ["a=b,c", "nodeLabels", { a: "b", c: "" }, ""],
  "lock-file": ["/run/lock", "lockFile", "/run/lock", ""],
  "exit-on-lock-contention": ["true", "exitOnLockContention", true, "false"],
  "runtime-cgroups": ["/rt", "runtimeCgroups", "/rt", ""],
  "image-credential-provider-config": ["/c", "imageCredentialProviderConfig", "/c", ""],
  "image-credential-provider-bin-dir": ["/b", "imageCredentialProviderBinDir", "/b", ""],
  "pod-infra-container-image": ["pause:3", "podInfraContainerImage", "pause:3", ""],
  "minimum-container-ttl-duration": ["1m", "minimumContainerTTLDurationMs", minute, "0s"],
  "maximum-dead-containers-per-container": ["2", "maximumDeadContainersPerContainer", 2, "1"],
  "maximum-dead-containers": ["10", "maximumDeadContainers", 10, "-1"],
  "experimental-mounter-path": ["/m", "experimentalMounterPath", "/m", ""],
  "experimental-allocatable-ignore-eviction": ["true", "experimentalAllocatableIgnoreEviction", true, "false"],
  "dashboard-address": ["[::1]:4194", "dashboardAddress", { host: "::1", port: 4194 }, ""],
  "housekeeping-interval": ["1m", "housekeepingIntervalMs", minute, "10s"],
  version: ["false", "", undefined, "false"],
  help: ["false", "", undefined, "false"],
  "application-metrics-count-limit": ["7", "", undefined, "100"],
  "boot-id-file": ["x", "", undefined, "/proc/sys/kernel/random/boot_id"],
  "container-hints": ["x", "", undefined, "/etc/cadvisor/container_hints.json"],
  containerd: ["x", "", undefined, "/run/containerd/containerd.sock"],
  "containerd-namespace": ["x", "", undefined, "k8s.io"],
  "enable-load-reader": ["true", "", undefined, "false"],
  "event-storage-age-limit": ["x", "", undefined, "default=0"],
  "event-storage-event-limit": ["x", "", undefined, "default=0"],
  "global-housekeeping-interval": ["2m", "", undefined, "1m0s"],
  "log-cadvisor-usage": ["true", "", undefined, "false"],
  "machine-id-file": ["x", "", undefined, "/etc/machine-id,/var/lib/dbus/machine-id"],
  "storage-driver-user": ["x", "", undefined, "root"],
  "storage-driver-password": ["x", "", undefined, "root"],
  "storage-driver-host": ["x", "", undefined, "localhost:8086"],
  "storage-driver-db": ["x", "", undefined, "cadvisor"],
  "storage-driver-table": ["x", "", undefined, "stats"],
  "storage-driver-secure": ["true", "", undefined, "false"],
  "storage-driver-buffer-duration": ["2m", "", undefined, "1m0s"],
  // Fields of the file
  address: ["::", "address", "::", "0.0.0.0"],
  "allowed-unsafe-sysctls": ["net.a,net.b", "allowedUnsafeSysctls", ["net.a", "net.b"], "[]"],
  "anonymous-auth": ["false", "authentication.anonymous.enabled", false, "true"],
  "authentication-token-webhook": ["true", "authentication.webhook.enabled", true, "false"],
  "authentication-token-webhook-cache-ttl": ["1m", "authentication.webhook.cacheTTL", minute, "2m0s"],
  "authorization-mode": ["Webhook", "authorization.mode", "Webhook", "AlwaysAllow"],
  "authorization-webhook-cache-authorized-ttl": ["1m", "authorization.webhook.cacheAuthorizedTTL", minute, "5m0s"],
  "authorization-webhook-cache-unauthorized-ttl": ["1m", "authorization.webhook.cacheUnauthorizedTTL", minute, "30s"],
  "cgroup-driver": ["systemd", "cgroupDriver", "systemd", "cgroupfs"],
  "cgroup-root": ["/pods", "cgroupRoot", "/pods", ""],
  "cgroups-per-qos": ["false", "cgroupsPerQOS", false, "true"],
  "client-ca-file": ["/ca", "authentication.x509.clientCAFile", "/ca", ""],
  "cluster-dns": ["10.0.0.1,10.0.0.2", "clusterDNS", ["10.0.0.1", "10.0.0.2"], "[]"],
  "cluster-domain": ["cluster.local", "clusterDomain", "cluster.local", ""],
  "container-log-max-files": ["9", "containerLogMaxFiles", 9, "5"],
  "container-log-max-size": ["1Mi", "containerLogMaxSize", "1Mi", "10Mi"],
  "container-runtime-endpoint": [
    "unix:///s",
    "containerRuntimeEndpoint",
    "unix:///s",
    "unix:///run/containerd/containerd.sock",
  ],
  "contention-profiling": ["true", "enableContentionProfiling", true, "false"],
  "cpu-cfs-quota": ["false", "cpuCFSQuota", false, "true"],
  "cpu-cfs-quota-period": ["50ms", "cpuCFSQuotaPeriod", 50, "100ms"],
  "cpu-manager-policy": ["static", "cpuManagerPolicy", "static", "none"],
  "cpu-manager-policy-options": ["full-pcpus-only=true", "cpuManagerPolicyOptions", { "full-pcpus-only": "true" }, ""],
  "cpu-manager-reconcile-period": ["1m", "cpuManagerReconcilePeriod", minute, "10s"],
  "enable-controller-attach-detach": ["false", "enableControllerAttachDetach", false, "true"],
  "enable-debugging-handlers": ["false", "enableDebuggingHandlers", false, "true"],
  "enable-server": ["false", "enableServer", false, "true"],
  "enforce-node-allocatable": ["pods,kube-reserved", "enforceNodeAllocatable", ["pods", "kube-reserved"], "[pods]"],
  "event-burst": ["0", "eventBurst", 0, "100"],
  "event-qps": ["1", "eventRecordQPS", 1, "50"],
  "eviction-hard": [
    "memory.available<1Gi,pid.available<10%",
    "evictionHard",
    { "memory.available": "1Gi", "pid.available": "10%" },
    "",
  ],
  "eviction-soft": ["memory.available<2Gi", "evictionSoft", { "memory.available": "2Gi" }, ""],
  "eviction-soft-grace-period": ["memory.available=1m", "evictionSoftGracePeriod", { "memory.available": "1m" }, ""],
  "eviction-minimum-reclaim": ["imagefs.available=2Gi", "evictionMinimumReclaim", { "imagefs.available": "2Gi" }, ""],
  "eviction-max-pod-grace-period": ["-1", "evictionMaxPodGracePeriod", -1, "0"],
  "eviction-pressure-transition-period": ["1m", "evictionPressureTransitionPeriod", minute, "5m0s"],
  "fail-cgroupv1": ["true", "failCgroupV1", true, "false"],
  "fail-swap-on": ["false", "failSwapOn", false, "true"],
  "feature-gates": ["MemoryQoS=t,NodeLogQuery=1", "featureGates", { MemoryQoS: true, NodeLogQuery: true }, ""],
  "file-check-frequency": ["1m", "fileCheckFrequency", minute, "20s"],
  "hairpin-mode": ["none", "hairpinMode", "none", "promiscuous-bridge"],
  "healthz-bind-address": ["::1", "healthzBindAddress", "::1", "127.0.0.1"],
  "healthz-port": ["0", "healthzPort", 0, "10248"],
  "http-check-frequency": ["1m", "httpCheckFrequency", minute, "20s"],
  "image-gc-high-threshold": ["90", "imageGCHighThresholdPercent", 90, "85"],
  "image-gc-low-threshold": ["70", "imageGCLowThresholdPercent", 70, "80"],
  "image-service-endpoint": ["unix:///i", "imageServiceEndpoint", "unix:///i", ""],
  "kernel-memcg-notification": ["true", "kernelMemcgNotification", true, "false"],
  "kube-api-burst": ["1", "kubeAPIBurst", 1, "100"],
  "kube-api-content-type": [
    "application/json",
    "contentType",
    "application/json",
    "application/vnd.kubernetes.protobuf",
  ],
  "kube-api-qps": ["1", "kubeAPIQPS", 1, "50"],
  "kube-reserved": ["cpu=1,memory=1Gi", "kubeReserved", { cpu: "1", memory: "1Gi" }, ""],
  "kube-reserved-cgroup": ["/kube", "kubeReservedCgroup", "/kube", ""],
  "kubelet-cgroups": ["/kubelet", "kubeletCgroups", "/kubelet", ""],
  "local-storage-capacity-isolation": ["false", "localStorageCapacityIsolation", false, "true"],
  "log-flush-frequency": ["1m", "logging.flushFrequency", minute, "5s"],
  "log-json-info-buffer-size": ["1Ki", "logging.options.json.infoBufferSize", "1Ki", "0"],
  "log-json-split-stream": ["true", "logging.options.json.splitStream", true, "false"],
  "log-text-info-buffer-size": ["1Ki", "logging.options.text.infoBufferSize", "1Ki", "0"],
  "log-text-split-stream": ["true", "logging.options.text.splitStream", true, "false"],
  "logging-format": ["json", "logging.format", "json", "text"],
  "make-iptables-util-chains": ["false", "makeIPTablesUtilChains", false, "true"],
  "manifest-url": ["http://u", "staticPodURL", "http://u", ""],
  "manifest-url-header": ["a:b,a:c", "staticPodURLHeader", { a: ["b", "c"] }, ""],
  "max-open-files": ["0x10", "maxOpenFiles", 16, "1000000"],
  "max-pods": ["0", "maxPods", 0, "110"],
  "memory-manager-policy": ["Static", "memoryManagerPolicy", "Static", "None"],
  "minimum-image-ttl-duration": ["1m", "imageMinimumGCAge", minute, "2m0s"],
  "node-status-max-images": ["-1", "nodeStatusMaxImages", -1, "50"],
  "node-status-update-frequency": ["1m", "nodeStatusUpdateFrequency", minute, "10s"],
  "oom-score-adj": ["5", "oomScoreAdj", 5, "-999"],
  "pod-cidr": ["10.0.0.0/24", "podCIDR", "10.0.0.0/24", ""],
  "pod-manifest-path": ["/manifests", "staticPodPath", "/manifests", ""],
  "pod-max-pids": ["100", "podPidsLimit", 100, "-1"],
  "pods-per-core": ["3", "podsPerCore", 3, "0"],
  port: ["1", "port", 1, "10250"],
  "protect-kernel-defaults": ["true", "protectKernelDefaults", true, "false"],
  "provider-id": ["cloud://1", "providerID", "cloud://1", ""],
  "qos-reserved": ["memory=50%", "qosReserved", { memory: "50%" }, ""],
  "read-only-port": ["0", "readOnlyPort", 0, "10255"],
  "register-node": ["false", "registerNode", false, "true"],
  "register-with-taints": [
    "a=b:NoSchedule,c:NoExecute",
    "registerWithTaints",
    [
      { key: "a", value: "b", effect: "NoSchedule" },
      { key: "c", value: "", effect: "NoExecute" },
    ],
    "",
  ],
  "registry-burst": ["1", "registryBurst", 1, "10"],
  "registry-qps": ["0", "registryPullQPS", 0, "5"],
  "reserved-cpus": ["0-1", "reservedSystemCPUs", "0-1", ""],
  "reserved-memory": [
    "0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi",
    "reservedMemory",
    [
      { numaNode: 0, limits: { memory: "1Gi", "hugepages-1Gi": "2Gi" } },
      { numaNode: 1, limits: { memory: "2Gi" } },
    ],
    "",
  ],
  "resolv-conf": ["", "resolvConf", "", "/etc/resolv.conf"],
  "rotate-certificates": ["true", "rotateCertificates", true, "false"],
  "rotate-server-certificates": ["true", "serverTLSBootstrap", true, "false"],
  runonce: ["false", "runOnce", false, "false"],
  "runtime-request-timeout": ["1m", "runtimeRequestTimeout", minute, "2m0s"],
  "serialize-image-pulls": ["false", "serializeImagePulls", false, "true"],
  "streaming-connection-idle-timeout": ["1m", "streamingConnectionIdleTimeout", minute, "4h0m0s"],
  "sync-frequency": ["2m", "syncFrequency", 2 * minute, "1m0s"],
  "system-cgroups": ["/system", "systemCgroups", "/system", ""],
  "system-reserved": ["pid=100", "systemReserved", { pid: "100" }, ""],
  "system-reserved-cgroup": ["/system", "systemReservedCgroup", "/system", ""],
  "tls-cert-file": ["/cert", "tlsCertFile", "/cert", ""],
  "tls-cipher-suites": ["TLS_AES_128_GCM_SHA256", "tlsCipherSuites", ["TLS_AES_128_GCM_SHA256"], "[]"],
  "tls-min-version": ["VersionTLS13", "tlsMinVersion", "VersionTLS13", ""],
  "tls-private-key-file": ["/key", "tlsPrivateKeyFile", "/key", ""],
  "topology-manager-policy": ["restricted", "topologyManagerPolicy", "restricted", "none"],
  "topology-manager-policy-options": [
    "prefer-closest-numa-nodes=true",
    "topologyManagerPolicyOptions",
    { "prefer-closest-numa-nodes": "true" },
    "",
  ],
  "topology-manager-scope": ["pod", "topologyManagerScope", "pod", "container"],
  v: ["4", "logging.verbosity", 4, "0"],
  vmodule: [
    "a=1,b*=2",
    "logging.vmodule",
    [
      { filePattern: "a", verbosity: 1 },
      { filePattern: "b*", verbosity: 2 },
    ],
    "",
  ],
  "volume-plugin-dir": ["/flex", "volumePluginDir", "/flex", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"],
  "volume-stats-agg-period": ["-1s", "volumeStatsAggPeriod", -1000, "1m0s"],
};

test("there are the kubelet's 150 flags and 5 of ours, and each has a row here", () => {
  assert.equal(flagTable.size, 155);
  assert.deepEqual(Object.keys(rows).sort(), [...flagTable.keys()]);
});

test("the defaults of all flags", async () => {
  const { flagTexts } = configOf(await loadConfig([], memoryIo()));
  const expected = Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, row[3]]));
  assert.deepEqual(flagTexts, Object.fromEntries(Object.entries(expected).sort()));
});

const stays = ["v", "vmodule", "log-flush-frequency", "provider-id", "fail-cgroupv1"];

for (const [name, [given, lands, expected]] of Object.entries(rows)) {
  const others = besides[name] ?? [];

  test(`--${name}=${given}`, async () => {
    const { config, warnings } = await load([...others, `--${name}=${given}`]);
    assert.deepEqual(landed(config, lands), expected);
    assert.deepEqual(config.origins[`--${name}`], { from: "flag", flag: name });
    const deprecations = warnings.filter((text) => text.startsWith(`Flag --${name} has been deprecated, `));
    const flag = flagTable.get(name);
    const isOfFile = flag?.field !== undefined && !stays.includes(name);
    assert.equal(deprecations.length, isOfFile || flag?.deprecated !== undefined ? 1 : 0);
    assert.equal(deprecations[0]?.includes("the Kubelet's --config flag") ?? false, isOfFile);
  });

  test(`--${name} as ${name.replaceAll("-", "_")} with its value apart or none`, async () => {
    const spelled = `--${name.replaceAll("-", "_")}`;
    const isBare = flagTable.get(name)?.kind.bare !== undefined;
    const parsed = await loadConfig([...others, ...(isBare ? [`${spelled}=${given}`] : [spelled, given])], memoryIo());
    assert.deepEqual(landed(configOf(parsed), lands), expected);
  });
}

const badTexts: Readonly<Record<string, string>> = {
  "": "maybe",
  int32: "2147483648",
  int: "1e3",
  duration: "5",
  Level: "-1",
  ip: "host",
  quantity: "ten",
  mapStringBool: "A",
  "pattern=N,...": "a",
  "[]v1.Taint": "a=b",
  "reserved-memory": "memory=1Gi",
  colonSeparatedMultimapStringString: "a",
  mapStringString: "a",
  "version[=true]": "v1.33.0",
};

for (const flag of flagTable.values()) {
  const bad = badTexts[flag.kind.type];
  if (bad === undefined || flag.name === "node-labels") continue;
  test(`--${flag.name}=${bad} is refused`, async () => {
    const result = await loadConfig([`--${flag.name}=${bad}`], memoryIo());
    const [problem] = problemsOf(result);
    const spelled = flag.shorthand === undefined ? `--${flag.name}` : `-${flag.shorthand}, --${flag.name}`;
    assert.ok(problem?.message.startsWith(`invalid argument "${bad}" for "${spelled}" flag: `), problem?.message);
    assert.ok(result.kind === "invalid" && result.message.startsWith("failed to parse kubelet flag: invalid argument"));
  });
}

async function load(argv: readonly string[]): Promise<{ config: AgentConfig; warnings: string[] }> {
  const config = configOf(await loadConfig(argv, memoryIo()));
  return { config, warnings: config.warnings.map(({ message }) => message) };
}

function landed(config: AgentConfig, lands: Row[1]): unknown {
  if (lands === "") return undefined;
  return lands in config.flags
    ? config.flags[lands as keyof KubeletFlags]
    : valueAt(config.kubelet, lands as FieldPath);
}
