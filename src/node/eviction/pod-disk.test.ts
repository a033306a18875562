import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { podWithVolumes } from "../../../test/support/volume-node.ts";
import { never } from "../../ground/base/index.ts";
import { exemptionOf } from "./exemption.ts";
import { ownFileBytes } from "./pod-disk.ts";

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
    assert.equal(exemptionOf(pod, false) !== undefined, inCluster));
  test(`limits of storage: ${name} is ${standalone ? "spared" : "held to them"} on a machine of its own`, () =>
    assert.equal(exemptionOf(pod, true) !== undefined, standalone));
}

test("limits of storage: what a pod writes into its hosts file or its termination messages counts", async (t) => {
  const podDir = await mkdtemp(join(tmpdir(), "nodelet-own-files-"));
  t.after(() => rm(podDir, { recursive: true }));
  assert.equal(await ownFileBytes(podDir, never), 0n);
  await writeFile(join(podDir, "etc-hosts"), Buffer.alloc(100_000, "x"));
  await mkdir(join(podDir, "containers", "main"), { recursive: true });
  // One for each instance of the container.
  for (const name of ["0a", "0b"]) {
    await writeFile(join(podDir, "containers", "main", name), Buffer.alloc(1_000_000, "x"));
  }
  const bytes = await ownFileBytes(podDir, never);
  assert.ok(bytes >= 2_100_000n, `counted ${bytes}`);
});
