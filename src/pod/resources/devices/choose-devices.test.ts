import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { chooseDevices, DevicesLacking, PreferenceNeeded } from "./choose-devices.ts";

const resource = "vendor.com/gpu";

/** "a@0" lies on NUMA node 0, "a" nowhere in particular. */
function devices(...texts: readonly string[]) {
  return new Map(
    texts.map((text) => {
      const [id = "", nodes] = text.split("@");
      const numaNodes = nodes === undefined ? [] : nodes.split("+").map(Number);
      return [id, { id, isHealthy: true, numaNodes }];
    }),
  );
}

const none = () => [];

describe("which devices are chosen", () => {
  const four = devices("d@1", "c@0", "b@1", "a@0");
  for (const [what, choice, expected] of [
    ["by name where nothing else counts", { healthy: devices("c", "a", "b"), count: 2 }, ["a", "b"]],
    ["not those in use", { healthy: devices("c", "a", "b"), inUse: ["a"], count: 2 }, ["b", "c"]],
    ["those near first", { healthy: four, nodes: [1], count: 1 }, ["b"]],
    ["all near ones and then others", { healthy: four, nodes: [1], count: 3 }, ["a", "b", "d"]],
    ["a device on two nodes is near to both", { healthy: devices("z@0+1", "a@0"), nodes: [1], count: 1 }, ["z"]],
    ["those without a place come last", { healthy: devices("a", "b@0", "c@1"), nodes: [1], count: 2 }, ["b", "c"]],
    ["what the pod has already comes first", { healthy: four, inUse: ["d"], reusable: ["d"], count: 2 }, ["a", "d"]],
    [
      "and is enough if there is enough of it",
      { healthy: four, inUse: ["c", "d"], reusable: ["d", "c"], count: 1 },
      ["c"],
    ],
    ["the plugin's choice", { healthy: four, count: 2, preferred: ["d", "c"] }, ["c", "d"]],
    ["as far as it makes sense", { healthy: four, inUse: ["d"], count: 2, preferred: ["d", "x", "c"] }, ["a", "c"]],
    ["and among those near", { healthy: four, nodes: [0], count: 1, preferred: ["d", "c"] }, ["c"]],
  ] as const) {
    test(what, () => {
      const { count, healthy } = choice;
      const nodes = "nodes" in choice ? new Set<number>(choice.nodes) : undefined;
      const inUse = new Set<string>("inUse" in choice ? choice.inUse : []);
      const reusable = new Set<string>("reusable" in choice ? choice.reusable : []);
      const preferred = () => ("preferred" in choice ? choice.preferred : []);
      assert.deepEqual(chooseDevices({ resource, count, healthy, inUse, reusable, nodes, preferred }), expected);
    });
  }
});

test("too few are said with both numbers", () => {
  const choice = { resource, count: 3, reusable: new Set(["a"]), inUse: new Set(["a", "b"]), nodes: undefined };
  assert.throws(() => chooseDevices({ ...choice, healthy: devices("a", "b", "c"), preferred: none }), {
    name: "DevicesLacking",
    message: "requested number of devices unavailable for vendor.com/gpu. Requested: 2, Available: 1",
  });
  assert.ok(new DevicesLacking("") instanceof Error);
});

test("a plugin that has not been asked is to be asked, with what it must include", () => {
  const choice = { resource, count: 2, reusable: new Set(["b"]), inUse: new Set(["b"]), nodes: undefined };
  const healthy = devices("a", "b", "c");
  assert.throws(
    () => chooseDevices({ ...choice, healthy, preferred: () => undefined }),
    (error) => {
      assert.ok(error instanceof PreferenceNeeded);
      assert.deepEqual(error.query, { available: ["b", "a", "c"], mustInclude: ["b"], count: 2 });
      return true;
    },
  );
});
