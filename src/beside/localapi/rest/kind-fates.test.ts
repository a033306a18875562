import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds } from "../kinds/index.ts";
import { kindFates, unmetExpectations } from "./kind-fates.ts";

test("of every kind that is served it is known who acts on it, or what is missing", () => {
  const served = [...new Set(kinds.map(({ plural }) => plural))].sort();
  assert.deepEqual(Object.keys(kindFates).sort(), served);
});

const stored = (spec: object) => ({ apiVersion: "v1", kind: "X", metadata: { name: "x" }, spec });

for (const kind of kinds) {
  const fate = kindFates[kind.plural];
  const isMissing = fate !== undefined && "missing" in fate;
  test(`${kind.plural}: ${isMissing ? "who stores one is told that nothing comes of it" : "nothing has to be said"}`, () => {
    const said = unmetExpectations(kind, stored({}));
    assert.equal(said.length, isMissing ? 1 : 0);
    if (isMissing) assert.ok(said[0]?.startsWith(`this ${kind.kind} is stored, but nothing comes of it here: `));
  });
}

test("a claim that names its volume is bound to it: nothing has to be said", () => {
  const claims = kinds.find(({ plural }) => plural === "persistentvolumeclaims") ?? assert.fail("claims are served");
  assert.deepEqual(unmetExpectations(claims, stored({ volumeName: "v" })), []);
});

const pods = kinds.find(({ plural }) => plural === "pods") ?? assert.fail("pods are served");

for (const { what, spec, says } of [
  { what: "a plain one", spec: {}, says: [] },
  { what: "the usual scheduler", spec: { schedulerName: "default-scheduler" }, says: [] },
  { what: "another scheduler, and a node", spec: { schedulerName: "mine", nodeName: "n" }, says: [] },
  { what: "another scheduler", spec: { schedulerName: "mine" }, says: [/^unless a scheduler "mine" of your own runs/] },
  { what: "a claim", spec: { resourceClaims: [{ name: "a", resourceClaimName: "b" }] }, says: [] },
  {
    what: "an ephemeral volume",
    spec: { volumes: [null, { name: "v", ephemeral: { volumeClaimTemplate: {} } }] },
    says: [/^this Pod waits for claims that no controller makes here/],
  },
  {
    what: "a claim from a template",
    spec: { resourceClaims: [{ name: "a", resourceClaimTemplateName: "b" }, null] },
    says: [/^this Pod waits for claims/],
  },
]) {
  test(`a pod with ${what}`, () => {
    const said = unmetExpectations(pods, stored(spec));
    assert.equal(said.length, says.length, said.join());
    for (const [index, text] of says.entries()) assert.match(said[index] ?? "", text);
  });
}
