import assert from "node:assert/strict";
import { test } from "node:test";
import { topText, type UsageAnswer, usageBetween } from "./top-text.ts";

const mi = 1024 * 1024;

function answer(seconds: number, pods: readonly [name: string, nanos: number, memory: number][]): UsageAnswer {
  return {
    node: {
      nodeName: "n1",
      cpu: { usageCoreNanoSeconds: seconds * 1e9 },
      memory: { workingSetBytes: 4000 * mi },
    },
    pods: pods.map(([name, usageCoreNanoSeconds, workingSetBytes]) => {
      const used = { cpu: { usageCoreNanoSeconds }, memory: { workingSetBytes } };
      return { podRef: { namespace: "shop", name, uid: name }, ...used, containers: [{ name: "main", ...used }] };
    }),
  };
}

const before = answer(10, [
  ["idle", 1e9, 100 * mi],
  ["busy", 5e9, 10 * mi],
  ["restarted", 9e9, mi],
]);
const after = answer(11, [
  ["idle", 1.001e9, 100 * mi],
  ["busy", 5.5e9, 10 * mi],
  ["restarted", 1e9, mi],
  ["new", 1e9, 20 * mi],
]);

test("usage is what was used between two looks, who uses most first", () => {
  const byCpu = usageBetween(before, after, 2000, "cpu");
  assert.deepEqual(byCpu.node, { name: "n1", cpuMillicores: 500, memoryBytes: 4000 * mi });
  assert.deepEqual(
    byCpu.pods.map(({ name, cpuMillicores }) => [name, cpuMillicores]),
    [
      ["busy", 250],
      ["idle", 1],
      // A counter that went back, or that nobody saw before, gives no rate.
      ["restarted", undefined],
      ["new", undefined],
    ],
  );
  const byMemory = usageBetween(before, after, 2000, "memory");
  assert.deepEqual(
    byMemory.pods.map(({ name }) => name),
    ["idle", "new", "busy", "restarted"],
  );
});

test("an agent that tells the same figures twice is believed what it says of rates", () => {
  const cpu = { usageCoreNanoSeconds: 7e9, usageNanoCores: 250e6 };
  const same = { ...before, node: { nodeName: "n1", cpu } };
  assert.equal(usageBetween(same, same, 1000, "cpu").node.cpuMillicores, 250);
  assert.equal(usageBetween(before, before, 1000, "cpu").node.cpuMillicores, undefined);
});

test("as a table, containers when asked for", () => {
  const usage = usageBetween(before, after, 2000, "cpu");
  assert.equal(
    topText(usage, false),
    `NAME            CPU   MEMORY
node n1         500m  4000Mi
shop/busy       250m  10Mi
shop/idle       1m    100Mi
shop/restarted  -     1Mi
shop/new        -     20Mi
`,
  );
  assert.match(topText(usage, true), /\nshop\/busy +250m +10Mi\n {2}main +250m +10Mi\n/);
});
