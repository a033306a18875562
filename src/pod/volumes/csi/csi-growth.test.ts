import assert from "node:assert/strict";
import { test } from "node:test";
import { testNodeName } from "../../../../test/support/csi-cluster.ts";
import { DriverFailure } from "../../../../test/support/csi-driver.ts";
import { CsiNode, claimed, refused, targetOf } from "../../../../test/support/csi-node.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes } from "../../../../test/support/volume-node.ts";
import { uidOf } from "../../../ground/model/index.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

test("grows with its claim at mounting, and tells the cluster", needsRoot, async () => {
  await using csi = await CsiNode.create({ abilities: ["stage", "expand"] });
  csi.bind("c", { capacity: { storage: "2Gi" } });
  const claim = csi.claims.claims.get("c");
  const status = {
    phase: "Bound",
    capacity: { storage: "1Gi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  };
  csi.claims.claims.set("c", { ...claim, status });
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  const request = csi.driver.lastCall("NodeExpandVolume");
  assert.deepEqual(request["capacityRange"], { requiredBytes: 2n << 30n, limitBytes: 0n });
  assert.equal(request["volumePath"], targetOf(csi, pod, "pv-c"));
  assert.deepEqual(csi.cluster.resizes, [{ state: "in progress" }, { state: "done", capacity: "2Gi" }]);
  assert.deepEqual(
    csi.node.events.map(({ reason, message }) => [reason, message]),
    [["FileSystemResizeSuccessful", `MountVolume.NodeExpandVolume succeeded for volume "pv-c" ${testNodeName}`]],
  );
  assert.deepEqual(csi.cluster.claimEvents, [
    `c FileSystemResizeSuccessful: MountVolume.NodeExpandVolume succeeded for volume "pv-c" ${testNodeName}`,
  ]);
});

for (const { code, name, waits, report } of [
  { code: 3, name: "infeasible", waits: false, report: { state: "failed", isInfeasible: true } },
  { code: 9, name: "not while in use", waits: false, report: undefined },
  { code: 13, name: "any other", waits: true, report: { state: "failed", isInfeasible: false } },
]) {
  test(`growing fails: ${name}`, needsRoot, async () => {
    await using csi = await CsiNode.create({ abilities: ["expand"] });
    csi.bind("c", { capacity: { storage: "2Gi" } });
    const status = {
      phase: "Bound",
      capacity: { storage: "1Gi" },
      allocatedResourceStatuses: { storage: "NodeResizePending" },
    };
    csi.claims.claims.set("c", { ...csi.claims.claims.get("c"), status });
    csi.driver.failures.set("NodeExpandVolume", { error: new DriverFailure(code, "no space"), when: "before" });
    const pod = podWithVolumes([claimed("c")]);
    if (waits) assert.match(await refused(csi, pod), /while expanding volume/);
    else await csi.node.volumes.mount(pod, never);
    assert.deepEqual(
      csi.node.events.map(({ reason, message }) => [reason, message.replace(/rpc error.*/, "…")]),
      waits ? [["FailedMount", 'MountVolume.Setup failed while expanding volume for volume "pv-c" : …']] : [],
    );
    const last = csi.cluster.resizes.at(-1);
    if (report === undefined) assert.deepEqual(last, { state: "in progress" });
    else assert.deepEqual(last, { ...report, message: last?.state === "failed" ? last.message : "" });
  });
}

test("grows while a pod uses it, as soon as the cluster says so", needsRoot, async () => {
  await using csi = await CsiNode.create({ abilities: ["stage", "expand"] });
  csi.bind("c", { capacity: { storage: "1Gi" } });
  const claim = csi.claims.claims.get("c");
  csi.claims.claims.set("c", { ...claim, status: { phase: "Bound", capacity: { storage: "1Gi" } } });
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  assert.deepEqual(csi.driver.steps(), ["NodeStageVolume", "NodePublishVolume"]);
  csi.claims.outage = new Error("away for a while");
  const { persistentVolumes } = csi.claims;
  const volume = persistentVolumes.get("pv-c");
  persistentVolumes.set("pv-c", { ...volume, spec: { ...volume?.spec, capacity: { storage: "3Gi" } } });
  const status = {
    phase: "Bound",
    capacity: { storage: "1Gi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  };
  csi.claims.claims.set("c", { ...claim, status });
  const looks = csi.claims.looks;
  await until("the claim was asked for in vain, twice", () => csi.claims.looks >= looks + 2);
  assert.deepEqual(csi.node.events, [], "that the API server is away is no trouble of the pod");
  csi.claims.outage = undefined;
  await until("the driver was asked", () => csi.driver.steps().includes("NodeExpandVolume"));
  await until("the cluster was told", () => csi.cluster.resizes.length >= 2);
  assert.deepEqual(csi.cluster.resizes.slice(0, 2), [{ state: "in progress" }, { state: "done", capacity: "3Gi" }]);
  assert.equal(csi.driver.steps().filter((step) => step === "NodePublishVolume").length, 1);
});

test("growing fails while a pod uses it: told, tried again, and the pod keeps its volume", needsRoot, async () => {
  await using csi = await CsiNode.create({ abilities: ["stage", "expand"] });
  csi.bind("c", { capacity: { storage: "2Gi" } });
  const claim = csi.claims.claims.get("c");
  csi.claims.claims.set("c", { ...claim, status: { phase: "Bound", capacity: { storage: "2Gi" } } });
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  csi.driver.failures.set("NodeExpandVolume", { error: new DriverFailure(13, "no space"), when: "before" });
  const status = {
    phase: "Bound",
    capacity: { storage: "1Gi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  };
  csi.claims.claims.set("c", { ...claim, status });
  await until("it was tried twice", () => csi.driver.steps().filter((s) => s === "NodeExpandVolume").length > 1);
  assert.deepEqual(new Set(csi.node.events.map(({ reason }) => reason)), new Set(["VolumeResizeFailed"]));
  assert.match(
    csi.node.events[0]?.message ?? "",
    /^NodeExpandVolume\.NodeExpandVolume failed for volume "pv-c" : rpc error.*no space/,
  );
  assert.equal(csi.node.volumes.of(uidOf(pod)).size, 1);
});

test("a volume that is only read does not grow, and says so", needsRoot, async () => {
  await using csi = await CsiNode.create({ abilities: ["expand"] });
  csi.bind("c", { capacity: { storage: "2Gi" } });
  const status = {
    phase: "Bound",
    capacity: { storage: "1Gi" },
    allocatedResourceStatuses: { storage: "NodeResizePending" },
  };
  csi.claims.claims.set("c", { ...csi.claims.claims.get("c"), status });
  await csi.node.volumes.mount(podWithVolumes([claimed("c", true)]), never);
  assert.ok(!csi.driver.steps().includes("NodeExpandVolume"));
  assert.match(csi.cluster.claimEvents[0] ?? "", /^c FileSystemResizeFailed: .*requested read-only file system$/);
});

test("a claim that points to another volume while the pod runs changes nothing for the pod", needsRoot, async () => {
  await using csi = await CsiNode.create();
  csi.bind("c");
  csi.bind("d");
  const pod = podWithVolumes([claimed("c")]);
  await csi.node.volumes.mount(pod, never);
  const swapped = csi.claims.claims.get("c");
  csi.claims.claims.set("c", { ...swapped, spec: { volumeName: "pv-d" } });
  const other = csi.claims.persistentVolumes.get("pv-d");
  csi.claims.persistentVolumes.set("pv-d", { ...other, spec: { ...other?.spec, claimRef: { uid: "claim-c" } } });
  const looks = csi.claims.looks;
  // The second look begins when all that followed from the first is done.
  await until("the claim was looked at, twice", () => csi.claims.looks >= looks + 2);
  assert.deepEqual(csi.driver.steps(), ["NodeStageVolume", "NodePublishVolume"]);
  await csi.node.volumes.unmount(uidOf(pod));
  assert.equal(csi.driver.lastCall("NodeUnpublishVolume")["volumeId"], "vol-c");
});
