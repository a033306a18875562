import assert from "node:assert/strict";
import { test } from "node:test";
import type { Taint, Toleration } from "./kube/gen/types.ts";
import { isTolerated } from "./tolerations.ts";

const taint: Taint = { key: "gpu", value: "old", effect: "NoExecute" };

for (const [toleration, isEnough] of [
  [{ operator: "Exists" }, true],
  [{ operator: "Exists", effect: "NoExecute" }, true],
  [{ operator: "Exists", effect: "NoSchedule" }, false],
  [{ key: "gpu", operator: "Exists" }, true],
  [{ key: "disk", operator: "Exists" }, false],
  [{ key: "gpu", operator: "Equal", value: "old" }, true],
  [{ key: "gpu", value: "old", effect: "" }, true],
  [{ key: "gpu", value: "new" }, false],
  [{ key: "gpu" }, false],
  [{ value: "old" }, false],
] satisfies readonly [Toleration, boolean][]) {
  test(`${JSON.stringify(toleration)} ${isEnough ? "is" : "is not"} enough`, () => {
    assert.equal(isTolerated(taint, [toleration]), isEnough);
  });
}

test("one of several is enough, none is not", () => {
  assert.equal(isTolerated(taint, [{ key: "disk", operator: "Exists" }, { operator: "Exists" }]), true);
  assert.equal(isTolerated(taint, []), false);
  assert.equal(isTolerated({ key: "gpu", effect: "NoExecute" }, [{ key: "gpu" }]), true, "no value is the empty one");
});
