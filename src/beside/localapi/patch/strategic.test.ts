import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PatchError } from "./patch-error.ts";
import { strategicMergePatch } from "./strategic.ts";

const containers = (...names: readonly string[]): object[] => names.map((name) => ({ name }));

const cases: readonly { readonly title: string; readonly from: object; readonly patch: object; readonly to: object }[] =
  [
    {
      title: "scalars are set, null removes",
      from: { spec: { nodeName: "a", hostname: "h" } },
      patch: { spec: { nodeName: "b", hostname: null } },
      to: { spec: { nodeName: "b" } },
    },
    {
      title: "maps are merged by key",
      from: { metadata: { labels: { a: "1", b: "2" } } },
      patch: { metadata: { labels: { a: null, c: "3" } } },
      to: { metadata: { labels: { b: "2", c: "3" } } },
    },
    {
      title: "list items are merged by their key; new ones stand where the patch has them",
      from: { spec: { containers: [{ name: "a", image: "1" }, { name: "b" }] } },
      patch: { spec: { containers: [{ name: "a", tty: true }, { name: "c" }] } },
      to: { spec: { containers: [{ name: "a", image: "1", tty: true }, { name: "c" }, { name: "b" }] } },
    },
    {
      title: "lists without a merge key are replaced",
      from: { spec: { tolerations: [{ key: "a" }, { key: "b" }] } },
      patch: { spec: { tolerations: [{ key: "c" }] } },
      to: { spec: { tolerations: [{ key: "c" }] } },
    },
    {
      title: "an item is deleted by a directive",
      from: { spec: { containers: containers("a", "b") } },
      patch: { spec: { containers: [{ $patch: "delete", name: "a" }] } },
      to: { spec: { containers: containers("b") } },
    },
    {
      title: "deleting an item that is not there is no trouble",
      from: { spec: { containers: containers("a") } },
      patch: { spec: { containers: [{ $patch: "delete", name: "x" }] } },
      to: { spec: { containers: containers("a") } },
    },
    {
      title: "a list is replaced by a directive, even with items that share a key",
      from: { status: { addresses: [{ type: "Hostname", address: "h" }] } },
      patch: {
        status: {
          addresses: [
            { type: "InternalIP", address: "1" },
            { type: "InternalIP", address: "2" },
            { $patch: "replace" },
          ],
        },
      },
      to: {
        status: {
          addresses: [
            { type: "InternalIP", address: "1" },
            { type: "InternalIP", address: "2" },
          ],
        },
      },
    },
    {
      title: "an object is replaced by a directive",
      from: { spec: { securityContext: { runAsUser: 1, runAsGroup: 2 } } },
      patch: { spec: { securityContext: { $patch: "replace", runAsUser: 3 } } },
      to: { spec: { securityContext: { runAsUser: 3 } } },
    },
    {
      title: "an object is emptied by a directive",
      from: { spec: { securityContext: { runAsUser: 1 }, hostname: "h" } },
      patch: { spec: { securityContext: { $patch: "delete" } } },
      to: { spec: { securityContext: {}, hostname: "h" } },
    },
    {
      title: "the order is as the patch says; what it does not name keeps its place among the rest",
      from: { spec: { containers: containers("a", "b", "c", "d") } },
      patch: { spec: { "$setElementOrder/containers": containers("d", "a", "e"), containers: [{ name: "e" }] } },
      to: { spec: { containers: containers("b", "c", "d", "a", "e") } },
    },
    {
      title: "a patch may do nothing but reorder",
      from: { spec: { containers: containers("a", "b") } },
      patch: { spec: { "$setElementOrder/containers": containers("b", "a") } },
      to: { spec: { containers: containers("b", "a") } },
    },
    {
      title: "plain values are merged as a set",
      from: { metadata: { finalizers: ["a", "b"] } },
      patch: { metadata: { finalizers: ["b", "c"] } },
      to: { metadata: { finalizers: ["a", "b", "c"] } },
    },
    {
      title: "plain values are removed one by one, and ordered",
      from: { metadata: { finalizers: ["a", "b", "c"] } },
      patch: {
        metadata: { "$deleteFromPrimitiveList/finalizers": ["a"], "$setElementOrder/finalizers": ["c", "b"] },
      },
      to: { metadata: { finalizers: ["c", "b"] } },
    },
    {
      title: "a volume changes its kind: keys that are not retained go",
      from: { spec: { volumes: [{ name: "v", emptyDir: {} }] } },
      patch: { spec: { volumes: [{ $retainKeys: ["name", "hostPath"], name: "v", hostPath: { path: "/x" } }] } },
      to: { spec: { volumes: [{ name: "v", hostPath: { path: "/x" } }] } },
    },
    {
      title: "directives leave no trace in what is new",
      from: {},
      patch: { spec: { "$setElementOrder/volumes": [{ name: "v" }], volumes: [{ name: "v", $retainKeys: ["name"] }] } },
      to: { spec: { volumes: [{ name: "v" }] } },
    },
    {
      title: "owner references are told apart by uid",
      from: { metadata: { ownerReferences: [{ uid: "1", name: "a" }] } },
      patch: {
        metadata: {
          ownerReferences: [
            { uid: "1", controller: true },
            { uid: "2", name: "a" },
          ],
        },
      },
      to: {
        metadata: {
          ownerReferences: [
            { uid: "1", name: "a", controller: true },
            { uid: "2", name: "a" },
          ],
        },
      },
    },
  ];

describe("strategic merge patch", () => {
  for (const { title, from, patch, to } of cases) {
    test(title, () => {
      const type = "addresses" in ((from as { status?: object }).status ?? {}) ? "core.v1.Node" : "core.v1.Pod";
      const before = structuredClone(from);
      assert.deepEqual(strategicMergePatch({ ...from }, { ...patch }, type), to);
      assert.deepEqual(from, before);
    });
  }

  for (const [title, patch] of [
    ["an unknown directive", { spec: { $patch: "shuffle" } }],
    ["a list item without its key", { spec: { containers: [{ image: "x" }] } }],
    ["a plain value in a list of objects", { spec: { containers: ["x"] } }],
    [
      "a retained list that leaves out what is set",
      { spec: { volumes: [{ $retainKeys: ["name"], name: "v", nfs: {} }] } },
    ],
    [
      "an order that the patch itself does not keep",
      { spec: { "$setElementOrder/containers": containers("b", "a"), containers: containers("a", "b") } },
    ],
    [
      "an order that leaves out what is patched",
      { spec: { "$setElementOrder/containers": containers("b"), containers: containers("a") } },
    ],
    ["an order that is no list", { spec: { "$setElementOrder/containers": "a", containers: [] } }],
  ] as const) {
    test(`${title} is refused`, () => {
      const from = { spec: { containers: containers("a") } };
      assert.throws(() => strategicMergePatch(from, patch, "core.v1.Pod"), PatchError);
    });
  }
});
