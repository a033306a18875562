import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { systemClock } from "../../ground/base/index.ts";
import type { CSINode, Node } from "../../ground/model/index.ts";
import { CsiNodeUpkeep, type NodeObjects } from "./csi-node-records.ts";

const { signal } = new AbortController();
const info = (driver: string, more: object = {}) => ({
  driver,
  nodeId: `id-${driver}`,
  topology: {},
  maxVolumes: 0n,
  ...more,
});

/** The node's objects at an API server that may refuse writes. */
class Objects implements NodeObjects {
  stored: CSINode | undefined;
  annotations: Record<string, string> = {};
  labels: Record<string, string> = { "kubernetes.io/hostname": "n" };
  refusals = 0;
  writes = 0;

  async csiNode(): Promise<CSINode | undefined> {
    return this.stored;
  }

  async putCsiNode(object: CSINode): Promise<void> {
    if (this.refusals-- > 0) throw new Error("conflict");
    this.writes++;
    this.stored = object;
  }

  async node(): Promise<Node> {
    return { metadata: { name: "n", uid: "u", annotations: this.annotations, labels: this.labels } };
  }

  async patchNode({ annotations, labels }: Parameters<NodeObjects["patchNode"]>[0]): Promise<void> {
    const merged = { ...this.annotations, ...annotations };
    this.annotations = Object.fromEntries(
      Object.entries(merged).filter((entry): entry is [string, string] => entry[1] !== null),
    );
    this.labels = { ...this.labels, ...labels };
  }
}

test("a missing object is made for its node", async () => {
  const objects = new Objects();
  await new CsiNodeUpkeep(objects, systemClock).announce(info("a"), signal);
  assert.deepEqual(objects.stored?.metadata, {
    name: "n",
    ownerReferences: [{ apiVersion: "v1", kind: "Node", name: "n", uid: "u" }],
  });
});

test("an object without drivers, as the API server spells it", async () => {
  const objects = new Objects();
  objects.stored = JSON.parse('{"metadata":{"name":"n","resourceVersion":"1"},"spec":{"drivers":null}}');
  const upkeep = new CsiNodeUpkeep(objects, systemClock);
  await upkeep.withdraw("a", signal);
  await upkeep.announce(info("a"), signal);
  assert.deepEqual(
    objects.stored?.spec.drivers.map(({ name }) => name),
    ["a"],
  );
});

test("what others keep in the object stays", async () => {
  const objects = new Objects();
  objects.stored = { metadata: { name: "n", annotations: { theirs: "1" } }, spec: { drivers: [] } };
  await new CsiNodeUpkeep(objects, systemClock).announce(info("a"), signal);
  assert.deepEqual(objects.stored?.metadata, { name: "n", annotations: { theirs: "1" } });
});

test("drivers come and go: object, annotation and labels follow", async () => {
  const objects = new Objects();
  const upkeep = new CsiNodeUpkeep(objects, systemClock);
  await upkeep.announce(info("b", { topology: { zone: "z1", area: "a1" }, maxVolumes: 5n }), signal);
  await upkeep.announce(info("a"), signal);
  assert.deepEqual(objects.stored?.spec.drivers, [
    { name: "b", nodeID: "id-b", topologyKeys: ["area", "zone"], allocatable: { count: 5 } },
    { name: "a", nodeID: "id-a", topologyKeys: [] },
  ]);
  assert.equal(objects.annotations["csi.volume.kubernetes.io/nodeid"], '{"a":"id-a","b":"id-b"}');
  assert.equal(objects.labels["zone"], "z1");
  await upkeep.withdraw("b", signal);
  assert.deepEqual(
    objects.stored?.spec.drivers.map(({ name }) => name),
    ["a"],
  );
  assert.equal(objects.annotations["csi.volume.kubernetes.io/nodeid"], '{"a":"id-a"}');
  assert.equal(objects.labels["zone"], "z1", "labels stay");
  await upkeep.withdraw("a", signal);
  assert.equal("csi.volume.kubernetes.io/nodeid" in objects.annotations, false);
});

test("a label that says otherwise refuses the driver, at once", async () => {
  const objects = new Objects();
  objects.labels = { zone: "z2" };
  const upkeep = new CsiNodeUpkeep(objects, new FakeClock());
  await assert.rejects(upkeep.announce(info("a", { topology: { zone: "z1" } }), signal), {
    message: 'detected topology value collision: driver reported "zone":"z1" but existing label is "zone":"z2"',
  });
  assert.equal(objects.stored, undefined);
});

test("conflicts are tried again: four times in all, after 10, 50 and 250 ms", async () => {
  for (const [refusals, succeeds] of [
    [3, true],
    [4, false],
  ] as const) {
    const objects = new Objects();
    const clock = new FakeClock();
    objects.refusals = refusals;
    const announced = new CsiNodeUpkeep(objects, clock).announce(info("a"), signal);
    const outcome = announced.then(
      () => true,
      () => false,
    );
    await clock.advance(10 + 50 + 250);
    assert.equal(await outcome, succeeds);
    assert.equal(clock.pendingTimers, 0);
  }
});
