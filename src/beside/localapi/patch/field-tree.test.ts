import assert from "node:assert/strict";
import { test } from "node:test";
import { common, differing, type FieldTree, fieldTree, removeFields, without } from "./field-tree.ts";

const pod = { form: "object", type: "core.v1.Pod" } as const;
const spec = {
  metadata: { labels: { a: "1" }, finalizers: ["x/y"] },
  spec: {
    nodeSelector: { disk: "fast" },
    containers: [{ name: "web", image: "i", ports: [{ containerPort: 80 }], command: ["a", "b"] }],
  },
};

test("fields, items by key, values of sets, and atomic fields as a whole", () => {
  assert.deepEqual(fieldTree(spec, pod), {
    "f:metadata": { "f:labels": { "f:a": {} }, "f:finalizers": { 'v:"x/y"': {} } },
    "f:spec": {
      "f:nodeSelector": {},
      "f:containers": {
        'k:{"name":"web"}': {
          ".": {},
          "f:name": {},
          "f:image": {},
          "f:command": {},
          "f:ports": { 'k:{"containerPort":80,"protocol":"TCP"}': { ".": {}, "f:containerPort": {} } },
        },
      },
    },
  });
});

const tree = (text: string): FieldTree => JSON.parse(text);

test("what one tree has beyond another, and what both have", () => {
  const one = tree('{"f:data":{"f:a":{},"f:b":{}},"f:immutable":{}}');
  const other = tree('{"f:data":{"f:a":{}}}');
  assert.deepEqual(without(one, other), tree('{"f:data":{"f:b":{}},"f:immutable":{}}'));
  assert.equal(without(other, one), undefined);
  assert.deepEqual(without(one, {}), one);
  assert.deepEqual(without(other, tree('{"f:data":{}}')), other);
  assert.deepEqual(common(one, other), other);
  assert.equal(common(one, tree('{"f:data":{"f:c":{}}}')), undefined);
});

test("removing fields, items and values leaves the rest", () => {
  const removed = tree(
    `{"f:metadata":{"f:finalizers":{"v:\\"x/y\\"":{}}},"f:spec":{"f:containers":{"k:{\\"name\\":\\"web\\"}":{"f:command":{},"f:ports":{"k:{\\"containerPort\\":80,\\"protocol\\":\\"TCP\\"}":{".":{}}}}}}}`,
  );
  assert.deepEqual(removeFields(spec, removed), {
    metadata: { labels: { a: "1" }, finalizers: [] },
    spec: { nodeSelector: { disk: "fast" }, containers: [{ name: "web", image: "i", ports: [] }] },
  });
});

test("fields whose values differ are told as people write them", () => {
  const other = { ...spec, spec: { ...spec.spec, containers: [{ name: "web", image: "other" }] } };
  const image = tree('{"f:spec":{"f:containers":{"k:{\\"name\\":\\"web\\"}":{".":{},"f:image":{}}}}}');
  assert.deepEqual(differing(image, spec, other), ['.spec.containers[name="web"].image']);
  assert.deepEqual(differing(image, spec, spec), []);
});
