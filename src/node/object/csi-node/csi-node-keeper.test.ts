import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeApi, refusal } from "../../../../test/support/fake-api.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { resources } from "../../../connections/kube/index.ts";
import type { CsiNodeInfo } from "../../../connections/plugins/index.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import type { CSINode, Node } from "../../../ground/model/index.ts";
import { CsiNodeKeeper } from "./csi-node-keeper.ts";

const never = new AbortController().signal;
const ref = { name: "node-1" };
const migrated = "storage.alpha.kubernetes.io/migrated-plugins";
const nodeIds = "csi.volume.kubernetes.io/nodeid";

const info = (driver: string, more: Partial<CsiNodeInfo> = {}): CsiNodeInfo => ({
  driver,
  nodeId: `id-${driver}`,
  topology: {},
  maxVolumes: 0n,
  ...more,
});
const owner = (uid: string): Node => ({ metadata: { name: "node-1", uid } });
const ownedBy = (uid: string) => [{ apiVersion: "v1", kind: "Node", name: "node-1", uid }];

function start() {
  const api = new FakeApi();
  const clock = new FakeClock();
  const told: (string | undefined)[] = [];
  const nodes: Node[] = [];
  const keeper = new CsiNodeKeeper("node-1", {
    client: api as never,
    clock,
    log: silentLogger,
    random: () => 0,
    onNode: (node) => nodes.push(node),
  });
  keeper.changed.on(() => told.push(keeper.problem));
  return {
    api,
    clock,
    keeper,
    told,
    nodes,
    putNode: (labels: Record<string, string> = {}) =>
      api.put(resources.nodes, ref, { metadata: { uid: "u1", labels: { "kubernetes.io/hostname": "n", ...labels } } }),
    csiNode: () => api.object(resources.csiNodes, ref),
    node: () => api.object(resources.nodes, ref)?.metadata,
    writes: () => api.story.filter((call) => !call.startsWith("get ")),
  };
}

describe("the CSINode is there", () => {
  test("made for the Node, and until then storage is not ready", async () => {
    const { keeper, told, csiNode, writes } = start();
    assert.equal(keeper.problem, "CSINode is not yet initialized");
    await keeper.ensure(owner("u1"), never);
    assert.deepEqual(told, [undefined]);
    const made = csiNode();
    assert.deepEqual(made?.metadata?.ownerReferences, ownedBy("u1"));
    assert.deepEqual(made?.spec, { drivers: [] });
    assert.match(made?.metadata?.annotations?.[migrated] ?? "", /^kubernetes\.io\/aws-ebs,/);
    assert.deepEqual(writes(), ["create v1/csinodes"]);
  });

  test("one that is there keeps its drivers, and passes to another Node of the name", async () => {
    const { api, keeper, csiNode, writes } = start();
    await keeper.ensure(owner("u1"), never);
    const drivers = [{ name: "d", nodeID: "n" }];
    api.put(resources.csiNodes, ref, { ...csiNode(), spec: { drivers } } as CSINode);
    await keeper.ensure(owner("u1"), never);
    assert.deepEqual(writes(), ["create v1/csinodes"]);
    await keeper.ensure(owner("u2"), never);
    assert.equal(csiNode()?.metadata?.ownerReferences?.[0]?.uid, "u2");
    assert.deepEqual(csiNode()?.spec.drivers, drivers);
  });

  test("trouble is shown and tried again", async () => {
    const { api, clock, keeper, told } = start();
    let failures = 3;
    api.trouble = () => {
      if (failures-- > 0) throw new Error("no server");
    };
    await using scope = new TaskScope();
    scope.spawn("ensure", (signal) => keeper.ensure(owner("u1"), signal));
    await clock.advance(29);
    assert.equal(keeper.problem, "failed to initialize CSINode: no server");
    await clock.advance(30 + 240 + 1_920);
    assert.deepEqual(told, ["failed to initialize CSINode: no server", undefined]);
  });

  test("a late try for a Node that is gone does not take the object from its successor", async () => {
    const { api, clock, keeper, csiNode } = start();
    await using scope = new TaskScope();
    api.trouble = () => {
      throw new Error("no server");
    };
    scope.spawn("for the old one", (signal) => keeper.ensure(owner("u1"), signal));
    await clock.advance(1);
    api.trouble = () => {};
    await keeper.ensure(owner("u2"), never);
    await clock.advance(120_000);
    assert.deepEqual(csiNode()?.metadata?.ownerReferences, ownedBy("u2"));
    assert.equal(scope.size, 0);
  });
});

describe("drivers announce themselves", () => {
  test("to a node without CSINode: the one that is made is as complete as any", async () => {
    const { keeper, putNode, csiNode } = start();
    putNode();
    await keeper.announce(info("a"), never);
    assert.deepEqual(csiNode()?.metadata?.ownerReferences, ownedBy("u1"));
    assert.match(csiNode()?.metadata?.annotations?.[migrated] ?? "", /vsphere-volume$/);
  });

  test("while the CSINode is being made: neither write is refused or lost", async () => {
    const { clock, keeper, putNode, csiNode, told } = start();
    putNode();
    await Promise.all([
      keeper.ensure(owner("u1"), never),
      keeper.announce(info("a"), never),
      keeper.announce(info("b"), never),
    ]);
    assert.deepEqual(
      csiNode()?.spec.drivers.map(({ name }) => name),
      ["a", "b"],
    );
    assert.deepEqual(told, [undefined]);
    assert.equal(clock.monotonic(), 0);
  });

  test("to an object without drivers, as the API server spells it", async () => {
    const { api, keeper, putNode, csiNode } = start();
    putNode();
    api.put(resources.csiNodes, ref, JSON.parse('{"metadata":{"name":"node-1"},"spec":{"drivers":null}}'));
    await keeper.withdraw("a", never);
    await keeper.announce(info("a"), never);
    assert.deepEqual(
      csiNode()?.spec.drivers.map(({ name }) => name),
      ["a"],
    );
  });

  test("what others keep in the object stays", async () => {
    const { api, keeper, putNode, csiNode } = start();
    putNode();
    api.put(resources.csiNodes, ref, { metadata: { annotations: { theirs: "1" } }, spec: { drivers: [] } });
    await keeper.announce(info("a"), never);
    assert.equal(csiNode()?.metadata?.annotations?.["theirs"], "1");
  });

  test("they come and go: object, annotation and labels follow", async () => {
    const { keeper, putNode, csiNode, node, nodes } = start();
    putNode();
    await keeper.announce(info("b", { topology: { zone: "z1", area: "a1" }, maxVolumes: 5n }), never);
    await keeper.announce(info("a", { maxVolumes: 1n << 40n }), never);
    assert.deepEqual(csiNode()?.spec.drivers, [
      { name: "b", nodeID: "id-b", topologyKeys: ["area", "zone"], allocatable: { count: 5 } },
      { name: "a", nodeID: "id-a", topologyKeys: [], allocatable: { count: 2_147_483_647 } },
    ]);
    assert.equal(node()?.annotations?.[nodeIds], '{"a":"id-a","b":"id-b"}');
    assert.equal(node()?.labels?.["zone"], "z1");
    assert.equal(nodes.at(-1)?.metadata?.annotations?.[nodeIds], '{"a":"id-a","b":"id-b"}', "who keeps the Node knows");
    await keeper.withdraw("b", never);
    assert.deepEqual(
      csiNode()?.spec.drivers.map(({ name }) => name),
      ["a"],
    );
    assert.equal(node()?.annotations?.[nodeIds], '{"a":"id-a"}');
    assert.equal(node()?.labels?.["zone"], "z1", "labels stay");
    await keeper.withdraw("a", never);
    assert.equal(nodeIds in (node()?.annotations ?? {}), false);
  });

  test("one that says what is written already costs no write; one that changed does", async () => {
    const { api, keeper, putNode, csiNode } = start();
    putNode();
    const driver = info("a", { topology: { zone: "z1" } });
    await keeper.announce(driver, never);
    api.calls.length = 0;
    await keeper.announce(driver, never);
    assert.deepEqual(api.story, ["get nodes/node-1", "get csinodes/node-1"]);
    await keeper.announce({ ...driver, maxVolumes: 3n }, never);
    assert.deepEqual(csiNode()?.spec.drivers, [
      { name: "a", nodeID: "id-a", topologyKeys: ["zone"], allocatable: { count: 3 } },
    ]);
  });

  test("a label that says otherwise refuses the driver, at once", async () => {
    const { keeper, putNode, csiNode } = start();
    putNode({ zone: "z2" });
    await assert.rejects(keeper.announce(info("a", { topology: { zone: "z1" } }), never), {
      message: 'detected topology value collision: driver reported "zone":"z1" but existing label is "zone":"z2"',
    });
    assert.equal(csiNode(), undefined);
  });

  test("before the Node is registered there is nothing to write to", async () => {
    const { clock, keeper } = start();
    const refused = assert.rejects(keeper.announce(info("a"), never), {
      message: 'node "node-1" is not registered yet',
    });
    await clock.advance(10 + 50 + 250);
    await refused;
  });

  test("conflicts are tried again: four times in all, after 10, 50 and 250 ms", async () => {
    for (const [conflicts, succeeds] of [
      [3, true],
      [4, false],
    ] as const) {
      const { api, clock, keeper, putNode } = start();
      putNode();
      let left = conflicts;
      api.trouble = ({ verb, path }) => {
        if (verb === "create" && left-- > 0) throw refusal(409, "Conflict", path);
      };
      const outcome = keeper.announce(info("a"), never).then(
        () => true,
        () => false,
      );
      await clock.advance(10 + 50 + 250);
      assert.equal(await outcome, succeeds);
      assert.equal(clock.pendingTimers, 0);
    }
  });
});
