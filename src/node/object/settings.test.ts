import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, loadFile } from "../../../test/support/load-config.ts";
import { parseQuantity } from "../../ground/model/index.ts";
import { nodeSettingsOf } from "./settings.ts";

test("the settings of a configuration file with defaults", async () => {
  const settings = nodeSettingsOf(configOf(await loadFile("", ["--hostname-override=Node-1"])));
  assert.deepEqual(settings.hardEviction, {
    memory: { quantity: parseQuantity("100Mi") },
    nodefs: { fraction: Math.fround(0.1) },
  });
  const { nodeName, register, port, updateEveryMs, reportEveryMs, leaseSeconds, maxPods, externalCloud } = settings;
  assert.deepEqual(
    { nodeName, register, port, updateEveryMs, reportEveryMs, leaseSeconds, maxPods, externalCloud },
    {
      nodeName: "node-1",
      register: true,
      port: 10_250,
      updateEveryMs: 10_000,
      reportEveryMs: 300_000,
      leaseSeconds: 40,
      maxPods: 110,
      externalCloud: false,
    },
  );
});

test("reserves of both kinds count together, thresholds that are off do not", async () => {
  const yaml = `
systemReserved: {cpu: 500m, memory: 1Gi}
kubeReserved: {cpu: "1", pid: "100"}
evictionHard: {memory.available: "0%", nodefs.available: 5Gi, pid.available: "10%"}
`;
  const settings = nodeSettingsOf(configOf(await loadFile(yaml)));
  assert.deepEqual(Object.fromEntries(settings.reserved), {
    cpu: parseQuantity("1500m"),
    memory: parseQuantity("1Gi"),
    pid: parseQuantity("100"),
  });
  assert.deepEqual(settings.hardEviction, { nodefs: { quantity: parseQuantity("5Gi") } });
});

test("labels, taints, cloud and addresses come from flags and file", async () => {
  const yaml = "registerWithTaints: [{key: a, value: b, effect: NoSchedule}]\nproviderID: x://1\n";
  const flags = ["--node-labels=zone=a,tier=b", "--cloud-provider=external", "--node-ip=10.0.0.5"];
  const settings = nodeSettingsOf(configOf(await loadFile(yaml, flags)));
  assert.deepEqual(settings.labels, { zone: "a", tier: "b" });
  assert.deepEqual(settings.taints, [{ key: "a", value: "b", effect: "NoSchedule" }]);
  assert.deepEqual([settings.providerId, settings.externalCloud, settings.nodeIps], ["x://1", true, ["10.0.0.5"]]);
});
