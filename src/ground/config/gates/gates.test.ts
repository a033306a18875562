import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryIo } from "../../../../test/support/config-io.ts";
import { configOf, loadFile, problemsOf } from "../../../../test/support/load-config.ts";
import { loadConfig } from "../load.ts";
import { kubeletGates } from "./gate-table.ts";
import { laterGates } from "./gate-table-later.ts";
import { otherComponentGates } from "./gate-table-others.ts";
import { describeGates, GateSet } from "./gates.ts";

const everyGate = { ...kubeletGates, ...laterGates, ...otherComponentGates };

test("the kubelet reads 88 gates, 206 are known in all, and two of later kubelets", () => {
  assert.equal(Object.keys(kubeletGates).length, 88);
  assert.equal(Object.keys({ ...kubeletGates, ...otherComponentGates }).length, 206);
  assert.equal(Object.keys(everyGate).length, 208);
});

for (const [name, spec] of Object.entries(everyGate)) {
  const isOn = spec.includes(" on");
  const isLocked = spec.endsWith("locked");
  test(`${name}: ${spec}`, () => {
    assert.equal(new GateSet().isOn(name), isOn);
    const gates = new GateSet();
    const problems = gates.set({ [name]: !isOn }).map(({ message }) => message);
    const refusal = `cannot set feature gate ${name} to ${!isOn}, feature is locked to ${isOn}`;
    assert.deepEqual(problems, isLocked ? [refusal] : []);
    assert.equal(gates.isOn(name), isLocked ? isOn : !isOn);
    assert.deepEqual(gates.set({ [name]: isOn }), []);
    const stage = /^(GA|deprecated)/.exec(spec)?.[1];
    const warning = `Setting ${stage} feature gate ${name}=${isOn}. It will be removed in a future release.`;
    assert.deepEqual(gates.warnings(), stage === undefined ? [] : [warning]);
  });
}

test("AllAlpha and AllBeta switch their stage, except for gates set by name, whatever the order", () => {
  const gates = new GateSet();
  gates.set({ MemoryQoS: false, AllAlpha: true, AllBeta: false, NodeLogQuery: true });
  const state = (name: string) => gates.isOn(name);
  assert.deepEqual(
    [
      "EventedPLEG",
      "MemoryQoS",
      "ImageVolume",
      "KubeletPSI",
      "NodeLogQuery",
      "NodeSwap",
      "DisableNodeKubeProxyVersion",
    ].map(state),
    [true, false, false, false, true, true, true],
  );
});

test("unknown gates are all named, with the one that was meant", () => {
  const messages = new GateSet()
    .set({ MemoryQos: true, NoSuchThing: true, MemoryQoS: true })
    .map(({ message }) => message);
  assert.deepEqual(messages, [
    "unrecognized feature gate: MemoryQos (did you mean MemoryQoS?)",
    "unrecognized feature gate: NoSuchThing",
  ]);
});

test("a gate with the name of something every object has is unknown", () => {
  assert.deepEqual(
    new GateSet().set({ constructor: true }).map(({ gate }) => gate),
    ["constructor"],
  );
});

test("the help text lists gates to try, not those that are settled", () => {
  const lines = describeGates();
  assert.ok(lines.includes("AllAlpha=true|false (ALPHA - default=false)"));
  assert.ok(lines.includes("KubeletPSI=true|false (BETA - default=true)"));
  assert.ok(!lines.some((line) => line.startsWith("NodeSwap=")));
  assert.deepEqual(lines, lines.toSorted());
});

test("an unknown gate on the command line stops the start at its step", async () => {
  const result = await loadConfig(["--feature-gates=Nope=true", "--node-labels=kubernetes.io/x=y"], memoryIo());
  assert.ok(result.kind === "invalid");
  assert.equal(
    result.message,
    "failed to set feature gates from initial flags-based config: unrecognized feature gate: Nope",
  );
});

test("an unknown gate in a file is an error with its place, where upstream panics", async () => {
  const result = await loadFile("featureGates:\n  MemoryQoS: true\n  Nope: true\n");
  assert.deepEqual(problemsOf(result), [
    { message: "unrecognized feature gate: Nope", field: 'featureGates["Nope"]', place: "/etc/kubelet.yaml:5" },
  ]);
});

test("a locked gate in a file is an error with its place", async () => {
  const [problem] = problemsOf(await loadFile("featureGates: {NodeSwap: false}"));
  assert.equal(problem?.message, "cannot set feature gate NodeSwap to false, feature is locked to true");
  assert.equal(problem?.place, "/etc/kubelet.yaml:3");
});

test("gates of flags win over those of the file, the others stay", async () => {
  const { kubelet, gates, origins } = configOf(
    await loadFile("featureGates: {MemoryQoS: true, NodeLogQuery: true}", ["--feature-gates=MemoryQoS=false"]),
  );
  assert.deepEqual(kubelet.featureGates, { MemoryQoS: false, NodeLogQuery: true });
  assert.deepEqual(
    [gates.enabled("MemoryQoS"), gates.enabled("NodeLogQuery"), gates.enabled("EventedPLEG")],
    [false, true, false],
  );
  assert.deepEqual(origins['featureGates["MemoryQoS"]'], { from: "flag", flag: "feature-gates" });
  assert.equal(origins['featureGates["NodeLogQuery"]']?.from, "file");
});

test("gates of other components are accepted and told of", async () => {
  const { warnings, gates } = configOf(
    await loadConfig(["--feature-gates=KMSv1=false,JobManagedBy=true,ExecProbeTimeout=false"], memoryIo()),
  );
  const texts = warnings.filter(({ kind }) => kind === "feature-gate").map(({ message }) => message);
  assert.ok(texts.includes("Setting GA feature gate ExecProbeTimeout=false. It will be removed in a future release."));
  assert.ok(texts.includes("Setting deprecated feature gate KMSv1=false. It will be removed in a future release."));
  assert.equal(gates.all.find(({ name }) => name === "ExecProbeTimeout")?.enabled, false);
  assert.equal(gates.all.length, 208);
});

test("gates decide defaults and rules, however they were set", async () => {
  for (const load of [
    () => loadFile("featureGates: {KubeletCrashLoopBackOffMax: true, KubeletEnsureSecretPulledImages: true}"),
    () => loadFile("", ["--feature-gates=KubeletCrashLoopBackOffMax=true,KubeletEnsureSecretPulledImages=true"]),
    () =>
      loadConfig(["--feature-gates=KubeletCrashLoopBackOffMax=true,KubeletEnsureSecretPulledImages=true"], memoryIo()),
  ]) {
    const { kubelet } = configOf(await load());
    assert.equal(kubelet.crashLoopBackOff.maxContainerRestartPeriodMs, 300_000);
    assert.equal(kubelet.imagePullCredentialsVerificationPolicy, "NeverVerifyPreloadedImages");
  }
});
