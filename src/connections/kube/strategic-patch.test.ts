import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { strategicMergePatch } from "../../beside/localapi/patch/strategic.ts";
import { nodeMergeKeys, podMergeKeys, strategicPatch } from "./strategic-patch.ts";

for (const { name, old, next, expected } of [
  { name: "nothing", old: { a: 1, b: undefined }, next: { a: 1 }, expected: undefined },
  { name: "a scalar", old: { a: 1, b: 2 }, next: { a: 3, b: 2 }, expected: { a: 3 } },
  { name: "what is gone is null", old: { a: 1, b: { c: 1 } }, next: { b: {} }, expected: { a: null, b: { c: null } } },
  { name: "a plain list is replaced whole", old: { a: [1, 2] }, next: { a: [1] }, expected: { a: [1] } },
  {
    name: "conditions go by type, in order, with what changed",
    old: {
      status: {
        conditions: [
          { type: "A", status: "True", t: "1" },
          { type: "B", status: "True", t: "1" },
          { type: "Gone", status: "True" },
        ],
      },
    },
    next: {
      status: {
        conditions: [
          { type: "A", status: "True", t: "1" },
          { type: "B", status: "False", t: "1" },
          { type: "New", status: "True" },
        ],
      },
    },
    expected: {
      status: {
        "$setElementOrder/conditions": [{ type: "A" }, { type: "B" }, { type: "New" }],
        conditions: [
          { type: "B", status: "False" },
          { type: "New", status: "True" },
          { $patch: "delete", type: "Gone" },
        ],
      },
    },
  },
  {
    name: "a first list of conditions is set as it is",
    old: { status: {} },
    next: { status: { conditions: [{ type: "A", status: "True" }] } },
    expected: { status: { conditions: [{ type: "A", status: "True" }] } },
  },
]) {
  test(name, () => assert.deepEqual(strategicPatch(old, next, nodeMergeKeys), expected));
}

const text = fc.constantFrom("", "a", "b", "True", "False");
const distinct = <Item extends object>(item: fc.Arbitrary<Item>, key: (item: Item) => string) =>
  fc.option(fc.uniqueArray(item, { selector: key, maxLength: 4 }), { nil: undefined });
const condition = fc.record(
  {
    type: fc.constantFrom("Ready", "DiskPressure", "Other", "More"),
    status: text,
    reason: text,
    lastHeartbeatTime: text,
  },
  { requiredKeys: ["type", "status"] },
);
const quantities = fc.option(fc.dictionary(fc.constantFrom("cpu", "memory", "pods"), fc.constantFrom("1", "2")), {
  nil: undefined,
});
const meta = fc.record({ labels: fc.dictionary(fc.constantFrom("l1", "l2", "l3"), text) });

test("a patch of a node makes of the old what the new is", () => {
  const node = fc.record({
    metadata: meta,
    status: fc.record({
      conditions: distinct(condition, ({ type }) => type),
      capacity: quantities,
      allocatable: quantities,
      images: fc.option(fc.array(fc.record({ names: fc.array(text), sizeBytes: fc.nat(3) }), { maxLength: 3 }), {
        nil: undefined,
      }),
      volumesInUse: fc.option(fc.array(text, { maxLength: 3 }), { nil: undefined }),
      nodeInfo: fc.record({ bootID: text, swap: fc.option(fc.record({ capacity: fc.nat(2) }), { nil: undefined }) }),
    }),
  });
  holds(node, nodeMergeKeys, "core.v1.Node");
});

test("a patch of a pod makes of the old what the new is", () => {
  const pod = fc.record({
    metadata: meta,
    status: fc.record({
      phase: text,
      conditions: distinct(condition, ({ type }) => type),
      podIPs: distinct(fc.record({ ip: fc.constantFrom("1", "2", "3") }), ({ ip }) => ip),
      containerStatuses: fc.option(fc.array(fc.record({ name: text, ready: fc.boolean() }), { maxLength: 3 }), {
        nil: undefined,
      }),
    }),
  });
  holds(pod, podMergeKeys, "core.v1.Pod");
});

function holds(object: fc.Arbitrary<object>, mergeKeys: Readonly<Record<string, string>>, type: string): void {
  fc.assert(
    fc.property(object, object, (old, next) => {
      const patch = strategicPatch(clean(old), clean(next), mergeKeys) ?? {};
      assert.deepEqual(clean(strategicMergePatch(clean(old) as never, patch as never, type)), clean(next));
      checkOrder((patch as { readonly status?: Readonly<Record<string, unknown>> }).status ?? {}, mergeKeys);
    }),
    { numRuns: 500 },
  );
}

/** kube-apiserver refuses a list whose items stand in another order than its $setElementOrder says. */
function checkOrder(status: Readonly<Record<string, unknown>>, mergeKeys: Readonly<Record<string, string>>): void {
  for (const [path, key] of Object.entries(mergeKeys)) {
    const field = path.replace("status.", "");
    const order = status[`$setElementOrder/${field}`] as readonly Readonly<Record<string, unknown>>[] | undefined;
    if (order === undefined) continue;
    const items = (status[field] ?? []) as readonly Readonly<Record<string, unknown>>[];
    const places = items
      .filter((item) => item["$patch"] !== "delete")
      .map((item) => order.findIndex((place) => place[key] === item[key]));
    assert.ok(!places.includes(-1), JSON.stringify(status));
    assert.deepEqual(
      places,
      places.toSorted((a, b) => a - b),
    );
  }
}

function clean(value: object): object {
  return JSON.parse(JSON.stringify(value)) as object;
}
