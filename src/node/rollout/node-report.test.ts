import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeConfigReport } from "./node-report.ts";
import type { RolloutReport } from "./ports.ts";

const source = { namespace: "kube-system", name: "cfg", key: "kubelet", uid: "u-1", resourceVersion: "7" };
const map = { version: "m", source: { from: "configMap", ...source } } as const;
const files = { version: "f", source: { from: "files" } } as const;
const report: RolloutReport = {
  active: files,
  wanted: map,
  assigned: map,
  good: files,
  error: `rolled back: ${"x".repeat(2_000)}`,
  trial: undefined,
  missing: undefined,
  isFollowed: true,
  refused: [],
  history: [],
};

test("the status of a Node has config maps only, with what the API server asks for; the annotation says all", () => {
  const { status, annotation = "" } = nodeConfigReport(report) ?? {};
  const { namespace, name, key: kubeletConfigKey, uid, resourceVersion } = source;
  assert.deepEqual(status?.assigned, { configMap: { namespace, name, kubeletConfigKey, uid, resourceVersion } });
  assert.equal(status?.active, undefined, "the files have no form there");
  assert.equal(status?.lastKnownGood, undefined);
  assert.ok((status?.error?.length ?? 0) <= 1_100, "nobody stores a novel");
  const said = JSON.parse(annotation);
  assert.deepEqual(said.assigned, { source: "/api/v1/namespaces/kube-system/configmaps/cfg", version: "m" });
  assert.deepEqual(said.active, { source: "local", version: "f" });
  assert.match(said.error, /^rolled back: xxx/);
});

test("a node that follows nothing and tries nothing has nothing to say", () => {
  assert.equal(nodeConfigReport({ ...report, isFollowed: false })?.annotation, undefined);
  assert.equal(nodeConfigReport(undefined), undefined);
});
