import assert from "node:assert/strict";
import { test } from "node:test";
import { podWithVolumes } from "../../../test/support/volume-node.ts";
import { isExempt } from "./pod-disk.ts";

const fromFile = { annotations: { "kubernetes.io/config.source": "file" } };

for (const { name, pod, inCluster, standalone } of [
  { name: "an ordinary pod", pod: podWithVolumes([]), inCluster: false, standalone: false },
  { name: "a pod from a file", pod: podWithVolumes([], {}, fromFile), inCluster: true, standalone: false },
  {
    name: "a critical pod from a file",
    pod: podWithVolumes([], { priority: 2_000_001_000 }, fromFile),
    inCluster: true,
    standalone: true,
  },
]) {
  test(`limits of storage: ${name} is ${inCluster ? "spared" : "held to them"} in a cluster`, () =>
    assert.equal(isExempt(pod, false), inCluster));
  test(`limits of storage: ${name} is ${standalone ? "spared" : "held to them"} on a machine of its own`, () =>
    assert.equal(isExempt(pod, true), standalone));
}
