import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { memoryIo } from "../../../test/support/config-io.ts";
import { configOf, fileHeader, loadFile, problemsOf } from "../../../test/support/load-config.ts";
import type { ConfigIo } from "./agent-config.ts";
import { toConfigz } from "./configz.ts";
import { loadConfig } from "./load.ts";
import { KUBERNETES_VERSION, NODELET_VERSION } from "./version.ts";

const load = (...argv: string[]) => loadConfig(argv, memoryIo({ "/etc/bad.yaml": "raw" }));

async function complaint(...argv: string[]): Promise<string> {
  const result = await load(...argv);
  assert.ok(result.kind === "invalid", result.kind);
  return result.message;
}

test("a problem of one step hides the steps after it", async () => {
  const stages: readonly (readonly [string, RegExp])[] = [
    ["--no-such-flag", /^failed to parse kubelet flag: unknown flag: --no-such-flag/],
    ["command", /^unknown command command$/],
    ["--feature-gates=Nope=true", /^failed to set feature gates from initial flags-based config: unrecognized/],
    [
      "--node-labels=kubernetes.io/x=y",
      /^failed to validate kubelet flags: unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: \[kubernetes.io\/x\]/,
    ],
    ["--config=/etc/bad.yaml", /^failed to load kubelet config file, path: \/etc\/bad.yaml, error: failed to decode/],
    ["--config-dir=/absent", /^failed to merge kubelet configs: /],
    ["--logging-format=xml", /^initialize logging: logging.format/],
    ["--max-pods=-1", /^failed to validate kubelet configuration, error: invalid configuration: maxPods/],
  ];
  for (const [index, [, wanted]] of stages.entries()) {
    assert.match(await complaint(...stages.slice(index).map(([word]) => word)), wanted);
  }
});

test("--help and --version end the start, in that order, before gates are looked at", async () => {
  const help = await load("--help", "--version", "--feature-gates=Nope=true");
  assert.ok(help.kind === "help");
  for (const text of [
    "--max-pods int32",
    "(default 110)",
    "-v, --v Level",
    "KubeletPSI=true|false (BETA - default=true)",
    "DEPRECATED",
  ]) {
    assert.ok(help.text.includes(text), text);
  }
  assert.deepEqual(await load("--version"), { kind: "version", text: `Kubernetes ${KUBERNETES_VERSION}\n` });
  const raw = await load("--version=raw");
  assert.ok(raw.kind === "version" && raw.text.includes('Minor:"34"'));
  assert.match(await complaint("--help", "extra"), /^unknown command extra$/);
});

test("--version=vX.Y.Z-suffix changes only what is reported", async () => {
  assert.equal(configOf(await load("--version=v1.34.11-mine")).reportedVersion, "v1.34.11-mine");
  assert.equal(configOf(await load()).reportedVersion, KUBERNETES_VERSION);
});

test("NODELET_VERSION is the one of the package", () => {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8"));
  assert.ok(typeof manifest === "object" && manifest !== null && "version" in manifest);
  assert.equal(manifest.version, NODELET_VERSION);
});

test("every problem of a step is reported, each with its field and place", async () => {
  const result = await loadFile("maxPods: -1\nhairpinMode: veth\nkubeReserved:\n  cpu: 1 core\n", ["--port=0"]);
  assert.deepEqual(
    problemsOf(result).map(({ field, place }) => [field, place]),
    [
      ["port", "--port"],
      ["hairpinMode", "/etc/kubelet.yaml:4"],
      ["maxPods", "/etc/kubelet.yaml:3"],
      ['kubeReserved["cpu"]', "/etc/kubelet.yaml:6"],
    ],
  );
});

test("flags over files: maps and lists replace, gates merge, vmodule appends, booleans win", async () => {
  const yaml =
    "evictionHard: {memory.available: 1Gi, pid.available: 5%}\nclusterDNS: [10.0.0.1]\nfailSwapOn: true\n" +
    "logging: {vmodule: [{filePattern: a, verbosity: 1}]}\nenforceNodeAllocatable: [none]\n";
  const flags = [
    "--eviction-hard=nodefs.available<5%",
    "--cluster-dns=10.0.0.2",
    "--vmodule=b=2",
    "--fail-swap-on=false",
    "--enforce-node-allocatable=",
  ];
  const { kubelet, origins } = configOf(await loadFile(yaml, flags));
  assert.deepEqual(kubelet.evictionHard, { "nodefs.available": "5%" });
  assert.deepEqual(kubelet.clusterDNS, ["10.0.0.2"]);
  assert.deepEqual(
    kubelet.logging.vmodule.map((item) => item.filePattern),
    ["a", "b"],
  );
  assert.equal(kubelet.failSwapOn, false);
  assert.deepEqual(kubelet.enforceNodeAllocatable, []);
  assert.deepEqual(origins["evictionHard"], { from: "flag", flag: "eviction-hard" });
});

test("seccompDefault: the flag or the file is enough", async () => {
  const values = [
    await loadFile("seccompDefault: true", ["--seccomp-default=false"]),
    await loadFile("seccompDefault: false", ["--seccomp-default"]),
    await loadFile("seccompDefault: false"),
  ].map((result) => configOf(result).kubelet.seccompDefault);
  assert.deepEqual(values, [true, true, false]);
});

test("an empty address flag leaves what the file says", async () => {
  const { kubelet } = configOf(
    await loadFile("address: 127.0.0.1\nhealthzBindAddress: 127.0.0.2", ["--address=", "--healthz-bind-address="]),
  );
  assert.deepEqual([kubelet.address, kubelet.healthzBindAddress], ["127.0.0.1", "127.0.0.2"]);
});

test("zero in a file means the default, except in pointer fields; zero by flag stays", async () => {
  const zeros = [
    "port",
    "maxPods",
    "registryBurst",
    "eventBurst",
    "kubeAPIBurst",
    "nodeLeaseDurationSeconds",
    "maxOpenFiles",
  ];
  const durations = ["syncFrequency", "imageMinimumGCAge", "runtimeRequestTimeout", "evictionPressureTransitionPeriod"];
  const pointers = [
    "eventRecordQPS",
    "registryPullQPS",
    "kubeAPIQPS",
    "healthzPort",
    "nodeStatusMaxImages",
    "oomScoreAdj",
  ];
  const yaml = [...zeros, ...pointers]
    .map((name) => `${name}: 0`)
    .concat(durations.map((name) => `${name}: 0s`))
    .join("\n");
  const { kubelet } = configOf(await loadFile(`${yaml}\nimageGCLowThresholdPercent: 0`, ["--pods-per-core=0"]));
  assert.deepEqual(
    [
      kubelet.port,
      kubelet.maxPods,
      kubelet.registryBurst,
      kubelet.eventBurst,
      kubelet.kubeAPIBurst,
      kubelet.nodeLeaseDurationSeconds,
      kubelet.maxOpenFiles,
    ],
    [10250, 110, 10, 100, 100, 40, 1_000_000],
  );
  assert.deepEqual(
    [
      kubelet.syncFrequencyMs,
      kubelet.imageMinimumGCAgeMs,
      kubelet.runtimeRequestTimeoutMs,
      kubelet.evictionPressureTransitionPeriodMs,
    ],
    [60_000, 120_000, 120_000, 300_000],
  );
  assert.deepEqual(
    [
      kubelet.eventRecordQPS,
      kubelet.registryPullQPS,
      kubelet.kubeAPIQPS,
      kubelet.healthzPort,
      kubelet.nodeStatusMaxImages,
      kubelet.oomScoreAdj,
      kubelet.imageGCLowThresholdPercent,
    ],
    [0, 0, 0, 0, 0, 0, 0],
  );
  assert.equal(configOf(await loadFile("maxPods: 5", ["--max-pods=0"])).kubelet.maxPods, 0);
});

test("null in a file is as good as nothing", async () => {
  const { kubelet } = configOf(await loadFile("maxPods: null\nevictionHard: null\nauthentication: ~\ntracing:\n"));
  assert.equal(kubelet.maxPods, 110);
  assert.equal(Object.keys(kubelet.evictionHard).length, 5);
  assert.equal(kubelet.tracing, undefined);
});

test("hard eviction thresholds: absent means all defaults, present means as given, or merged when asked", async () => {
  const given = async (yaml: string) => configOf(await loadFile(yaml)).kubelet.evictionHard;
  assert.equal(Object.keys(await given("")).length, 5);
  assert.deepEqual(await given("evictionHard: {}"), {});
  assert.deepEqual(await given("evictionHard: {memory.available: 1Gi}"), { "memory.available": "1Gi" });
  assert.deepEqual(await given("evictionHard: {memory.available: 1Gi}\nmergeDefaultEvictionSettings: true"), {
    "memory.available": "1Gi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
  });
});

test("nodeStatusReportFrequency follows the update frequency of the file, not of the flag", async () => {
  const report = async (yaml: string, ...flags: string[]) =>
    configOf(await loadFile(yaml, flags)).kubelet.nodeStatusReportFrequencyMs;
  assert.equal(await report("nodeStatusUpdateFrequency: 7s"), 7_000);
  assert.equal(await report("nodeStatusUpdateFrequency: 7s\nnodeStatusReportFrequency: 9s"), 9_000);
  assert.equal(await report("", "--node-status-update-frequency=7s"), 300_000);
});

test("serializeImagePulls is off by default when several pulls are allowed", async () => {
  const serialize = async (yaml: string) => configOf(await loadFile(yaml)).kubelet.serializeImagePulls;
  assert.deepEqual(
    [await serialize("maxParallelImagePulls: 2"), await serialize("maxParallelImagePulls: 1")],
    [false, true],
  );
});

test("relative paths in the file start at the file's directory; empty and absolute ones stay", async () => {
  const yaml =
    "staticPodPath: a\ntlsCertFile: ../b\ntlsPrivateKeyFile: /c\nresolvConf: ''\nvolumePluginDir: d/\npodLogsDir: e\nauthentication: {x509: {clientCAFile: f}}";
  const { kubelet } = configOf(await loadFile(yaml));
  assert.deepEqual(
    [
      kubelet.staticPodPath,
      kubelet.tlsCertFile,
      kubelet.tlsPrivateKeyFile,
      kubelet.resolvConf,
      kubelet.podLogsDir,
      kubelet.authentication.x509.clientCAFile,
    ],
    ["/etc/a", "/b", "/c", "", "/etc/e", "/etc/f"],
  );
  const relative = await loadConfig(
    ["--kubeconfig=k", "--config=conf/kubelet.yaml"],
    memoryIo({ "/work-dir/conf/kubelet.yaml": `${fileHeader}staticPodPath: a` }),
  );
  assert.equal(configOf(relative).kubelet.staticPodPath, "/work-dir/conf/a");
});

test("unknown and repeated fields of the file are warnings with place, path and the name that was meant", async () => {
  const { kubelet, warnings } = configOf(
    await loadFile("maxPod: 5\nmaxPods: 6\nmaxPods: 7\nlogging:\n  verbose: 1\nMaxPods: 8\n"),
  );
  assert.equal(kubelet.maxPods, 7);
  const prefix = "Using lenient decoding as strict decoding failed: /etc/kubelet.yaml:";
  assert.deepEqual(
    warnings.filter(({ kind }) => kind === "config-file").map(({ message }) => message.replace(prefix, "")),
    [
      '5:1: key "maxPods" is already set on line 4',
      '3:1: unknown field "maxPod" (did you mean maxPods?)',
      '7:3: unknown field "logging.verbose"',
      '8:1: unknown field "MaxPods" (did you mean maxPods?)',
    ],
  );
});

for (const [title, text, message] of [
  ["missing", undefined, 'failed to read kubelet config file "/etc/kubelet.yaml", error: ENOENT'],
  ["empty", "", 'kubelet config file "/etc/kubelet.yaml" was empty'],
  ["only a comment", "# nothing\n", "failed to decode: Object 'Kind' is missing"],
  ["a list", "- a\n", "failed to decode: Object 'Kind' is missing"],
  ["without kind", "apiVersion: kubelet.config.k8s.io/v1beta1\n", "failed to decode: Object 'Kind' is missing"],
  ["without apiVersion", "kind: KubeletConfiguration\n", "failed to decode: Object 'apiVersion' is missing"],
  [
    "another version",
    "apiVersion: kubelet.config.k8s.io/v1\nkind: KubeletConfiguration\n",
    'no kind "KubeletConfiguration" is registered for version "kubelet.config.k8s.io/v1"',
  ],
  ["another kind", "apiVersion: v1\nkind: Pod\n", 'no kind "Pod" is registered for version "v1"'],
  ["broken YAML", "a: [", "failed to decode: "],
  ["a tab for indentation", "a:\n\tb: 1\n", "failed to decode: "],
] as const) {
  test(`a --config file that is ${title}`, async () => {
    const files = text === undefined ? {} : { "/etc/kubelet.yaml": text };
    const result = await loadConfig(["--config=/etc/kubelet.yaml"], memoryIo(files));
    const [problem] = problemsOf(result);
    assert.ok(problem?.message.startsWith(message) || problem?.message.includes(message), problem?.message);
    assert.ok(problem?.place?.startsWith("/etc/kubelet.yaml"));
  });
}

test("JSON is read too, and of several YAML documents the first", async () => {
  const json = JSON.stringify(
    { apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration", maxPods: 9 },
    undefined,
    "\t",
  );
  const argv = ["--kubeconfig=k", "--config=/etc/kubelet.yaml"];
  assert.equal(configOf(await loadConfig(argv, memoryIo({ "/etc/kubelet.yaml": json }))).kubelet.maxPods, 9);
  const { kubelet, warnings } = configOf(await loadFile("maxPods: 8\n---\nmaxPods: 9\n"));
  assert.equal(kubelet.maxPods, 8);
  assert.match(warnings.map(({ message }) => message).join(), /:4:1: only the first YAML document of the file is read/);
});

test("values are read as Go's YAML library reads them", async () => {
  const { kubelet } = configOf(
    await loadFile("failSwapOn: off\nmaxPods: 0x10\nproviderID: 2020-01-01\nclusterDomain: 1:30\nport: 1e4\n"),
  );
  assert.deepEqual(
    [kubelet.failSwapOn, kubelet.maxPods, kubelet.providerID, kubelet.clusterDomain, kubelet.port],
    [false, 16, "2020-01-01", "1:30", 10_000],
  );
  const [problem] = problemsOf(await loadFile("maxOpenFiles: 9223372036854775807"));
  assert.match(
    problem?.message ?? "",
    /^maxOpenFiles: 9223372036854775807 is too large, the largest number supported is/,
  );
  const [type] = problemsOf(await loadFile("syncFrequency: 60"));
  assert.match(type?.message ?? "", /^syncFrequency: wanted a duration such as "1m30s", found the number 60$/);
});

test("without an API server the webhooks of a file must be switched off", async () => {
  const standalone = (yaml: string) => loadConfig(["--config=/c"], memoryIo({ "/c": fileHeader + yaml }));
  const fields = problemsOf(await standalone("")).map(({ field }) => field);
  assert.deepEqual(fields, ["authentication.webhook.enabled", "authorization.mode"]);
  configOf(await standalone("authentication: {webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}"));
});

test("rules that depend on the machine", async () => {
  const v1: Partial<ConfigIo> = { cgroupVersion: async () => 1 };
  const first = async (yaml: string) => problemsOf(await loadFile(yaml, [], v1))[0]?.message;
  assert.match(
    (await first("failCgroupV1: true")) ?? "",
    /^kubelet is configured to not run on a host using cgroup v1/,
  );
  assert.match(
    (await first("singleProcessOOMKill: false")) ?? "",
    /singleProcessOOMKill false must not be explicitly set to false/,
  );
  assert.match(
    (await first("memorySwap: {swapBehavior: LimitedSwap}")) ?? "",
    /"LimitedSwap" must not be used with cgroup v1/,
  );
  configOf(await loadFile("failCgroupV1: true\nsingleProcessOOMKill: false\nmemorySwap: {swapBehavior: LimitedSwap}"));
  configOf(await loadFile("reservedSystemCPUs: 0-63", [], { onlineCpus: async () => undefined }));
});

for (const [argv, message] of [
  [["--cloud-provider=aws"], 'cloud provider "aws" was specified, but built-in cloud providers are disabled'],
  [
    ["--node-ip=10.0.0.1,10.0.0.2"],
    'bad --node-ip "10.0.0.1,10.0.0.2": must contain either a single IP or a dual-stack pair of IPs',
  ],
  [["--node-ip=10.0.0.1,fd00::1,fd00::2"], "must contain either a single IP or a dual-stack pair of IPs"],
  [["--node-ip=::,10.0.0.1"], "dual-stack node IP cannot include '0.0.0.0' or '::'"],
  [["--exit-on-lock-contention"], "cannot exit on lock file contention: no lock file specified"],
  [["--root-dir="], "invalid root directory"],
  [["--runonce"], "Runonce mode has been deprecated and should not be set"],
  [
    ["--node-labels=a.k8s.io/b=c"],
    "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [a.k8s.io/b]",
  ],
  [["--node-labels=-a=b"], "invalid node labels: '-a' - name part must consist of"],
  [["--node-labels=a=b c"], "invalid node labels: 'b c' - a valid label must be"],
] as const) {
  test(`refused: ${argv.join(" ")}`, async () =>
    assert.ok((await complaint(...argv)).includes(message), await complaint(...argv)));
}

test("labels a node may give itself", async () => {
  const labels =
    "kubernetes.io/hostname=a,topology.kubernetes.io/zone=b,node.kubernetes.io/x=c,a.kubelet.kubernetes.io/y=d,example.com/z=e";
  assert.equal(Object.keys(configOf(await load(`--node-labels=${labels}`)).flags.nodeLabels).length, 5);
});

test("members of --node-ip that are no addresses are left out with a note", async () => {
  const { flags, warnings } = configOf(await load("--node-ip=10.0.0.1,nonsense"));
  assert.deepEqual(flags.nodeIPs, ["10.0.0.1"]);
  assert.match(warnings.map(({ message }) => message).join(), /ignoring them: --node-ip "nonsense"/);
});

test("the node name", async () => {
  assert.equal(configOf(await load()).nodeName, "node-1");
  assert.equal(configOf(await load("--hostname-override= My.Node ")).nodeName, "my.node");
  const nameless = await loadConfig([], memoryIo({}, { hostname: () => " " }));
  assert.match(problemsOf(nameless)[0]?.message ?? "", /^empty hostname is invalid/);
  assert.match(await complaint("--hostname-override= "), /empty hostname is invalid/);
});

test("the configuration is frozen to its depths", async () => {
  const config = configOf(
    await loadFile("evictionHard: {memory.available: 1Gi}\nregisterWithTaints: [{key: a, effect: NoSchedule}]", [
      "--node-labels=a=b",
    ]),
  );
  const frozen = [
    config,
    config.kubelet,
    config.kubelet.evictionHard,
    config.kubelet.logging.options.text,
    config.kubelet.registerWithTaints[0],
    config.flags.nodeLabels,
    config.warnings,
    config.origins,
    config.gates.all[0],
  ];
  assert.ok(frozen.every((part) => Object.isFrozen(part)));
});

test("/configz has the names and notation of a file, without apiVersion and kind", async () => {
  const yaml =
    "tracing: {}\nstaticPodURLHeader: {X-Token: [secret]}\nreservedMemory: [{numaNode: 0, limits: {memory: 1024Mi}}]\nregisterWithTaints: [{key: a, effect: NoSchedule}]";
  const { kubeletconfig } = toConfigz(configOf(await loadFile(yaml, ["--max-pods=0"])));
  const shown: Readonly<Record<string, unknown>> = {
    syncFrequency: "1m0s",
    imageMaximumGCAge: "0s",
    cpuCFSQuotaPeriod: "100ms",
    streamingConnectionIdleTimeout: "4h0m0s",
    tracing: {},
    memorySwap: {},
    crashLoopBackOff: {},
    staticPodURLHeader: { "X-Token": ["secret"] },
    reservedMemory: [{ numaNode: 0, limits: { memory: "1Gi" } }],
    registerWithTaints: [{ key: "a", effect: "NoSchedule" }],
    enableSystemLogQuery: false,
    memoryThrottlingFactor: 0.9,
    authentication: { x509: {}, webhook: { enabled: true, cacheTTL: "2m0s" }, anonymous: { enabled: false } },
    logging: {
      format: "text",
      flushFrequency: "5s",
      verbosity: 0,
      options: { text: { infoBufferSize: "0" }, json: { infoBufferSize: "0" } },
    },
  };
  for (const [name, value] of Object.entries(shown)) assert.deepEqual(kubeletconfig[name], value, name);
  for (const absent of [
    "apiVersion",
    "kind",
    "maxPods",
    "readOnlyPort",
    "staticPodPath",
    "clusterDNS",
    "userNamespaces",
    "rotateCertificates",
    "runOnce",
  ]) {
    assert.ok(!(absent in kubeletconfig), absent);
  }
});

for (const [amount, rule] of [
  ["0", /reserved memory may not be zero for NUMA node 1 and resource "memory"/],
  ["-1Gi", /reserved memory may not be negative for NUMA node 1 and resource "memory"/],
] as const) {
  test(`reservedMemory of ${amount} is refused, whatever the sum`, async () => {
    const yaml = `reservedMemory: [{numaNode: 0, limits: {memory: 2Gi}}, {numaNode: 1, limits: {memory: "${amount}"}}]`;
    assert.match(problemsOf(await loadFile(yaml))[0]?.message ?? "", rule);
  });
}
