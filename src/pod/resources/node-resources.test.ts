// One truth about what pods may use: as the Node shows it, as admission counts it, as containers are told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { configOf, loadFile } from "../../../test/support/load-config.ts";
import { TestFacts } from "../../../test/support/node-facts.ts";
import { enginePod } from "../../../test/support/test-engine.ts";
import { readFileSystem, readHugePages } from "../../connections/host/index.ts";
import { silentLogger } from "../../ground/base/index.ts";
import { amountsOf, type Node, type NodeStatus, resourceField, wholeUnits } from "../../ground/model/index.ts";
import { nodeSettingsOf } from "../../node/object/index.ts";
import { StatusComputer } from "../../node/object/status/compute.ts";
import { nodeFitHandler } from "../registry/index.ts";
import { NodeResources } from "./node-resources.ts";

const settings = [
  "",
  "evictionHard: {memory.available: 10%, nodefs.available: 5Gi}\n",
  "systemReserved: {cpu: 500m, memory: 1Gi, ephemeral-storage: 1Gi}\nkubeReserved: {memory: 100Mi}\npodsPerCore: 2\n",
  "maxPods: 5\nlocalStorageCapacityIsolation: false\n",
];

async function world(yaml: string) {
  const config = configOf(await loadFile(yaml));
  const facts = new TestFacts();
  let present: NodeStatus | undefined;
  const resources = new NodeResources(
    config,
    { machine: facts.machine, hugePages: await readHugePages() },
    {
      rootFilesystemBytes: async () => (await readFileSystem("/")).capacityBytes,
      present: () => present,
      devices: () => ({ capacity: new Map(), allocatable: new Map(), removed: [] }),
    },
  );
  await resources.rootFilesystemBytes();
  const besides = (status: NodeStatus): void => {
    present = status;
  };
  const computer = new StatusComputer(nodeSettingsOf(config), {
    facts: Object.assign(facts, {
      hugePages: resources.facts.hugePages,
      rootFilesystemBytes: () => resources.rootFilesystemBytes(),
    }),
    clock: new FakeClock(),
    log: silentLogger,
    recordEvent() {},
    storageProblem: () => undefined,
  });
  return { resources, besides, compute: (node: Node) => computer.compute(node, new AbortController().signal) };
}

for (const yaml of settings) {
  test(`status, admission and downward API agree: ${JSON.stringify(yaml)}`, async () => {
    const { resources, compute } = await world(yaml);
    const { status } = await compute({ metadata: { name: "n" } });
    const shown = amountsOf(status?.allocatable);
    assert.deepEqual(resources.allocatable(), shown);
    const admit = nodeFitHandler({
      node: () => ({ node: { metadata: { name: "n" } }, isConfirmed: true }),
      allocatable: () => resources.allocatable(),
    });
    for (const resource of ["cpu", "memory", "ephemeral-storage"]) {
      const amount = shown.get(resource);
      if (amount === undefined) continue;
      const asking = (nano: bigint) => {
        const requests = { [resource]: `${nano}n` };
        return enginePod("p", { containers: [{ name: "main", image: "i", resources: { requests } }] });
      };
      assert.equal(admit(asking(amount), []).type, "admitted", `all of ${resource}`);
      assert.equal(admit(asking(amount + 1_000_000_000n), []).type, "rejected", `more than all of ${resource}`);
      const pod = enginePod("p");
      const [container] = pod.spec.containers;
      assert.ok(container);
      const told = resourceField(
        pod,
        { resource: `limits.${resource}`, divisor: "1" },
        container,
        resources.allocatable(),
      );
      assert.equal(BigInt(told), resource === "cpu" ? (amount + 999_999_999n) / 1_000_000_000n : wholeUnits(amount));
    }
    const most = Number(wholeUnits(shown.get("pods") ?? 0n));
    const others = Array.from({ length: most }, (_, index) => enginePod(`o${index}`));
    assert.equal(admit(enginePod("p"), others).type, "rejected", "one more than there may be");
    assert.equal(admit(enginePod("p"), others.slice(1)).type, "admitted");
  });
}

test("what others count in the Node's status counts for admission too", async () => {
  const { resources, besides } = await world("");
  const dongles = { "example.com/dongle": "4" };
  besides({ capacity: dongles, allocatable: dongles });
  assert.equal(wholeUnits(resources.allocatable().get("example.com/dongle") ?? 0n), 4n);
});
