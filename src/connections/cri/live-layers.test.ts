import assert from "node:assert/strict";
import { test } from "node:test";
import { never } from "../../ground/base/index.ts";
import { liveLayers } from "./live-layers.ts";

for (const { mountpoint, snapshotter } of [
  { mountpoint: "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs", snapshotter: "overlayfs" },
  { mountpoint: "/x/io.containerd.snapshotter.v1.stargz-v2/", snapshotter: "stargz-v2" },
  { mountpoint: "/var/lib/containers/storage/overlay-images", snapshotter: undefined },
  { mountpoint: "", snapshotter: undefined },
]) {
  test(`what a container has written below ${mountpoint || "nowhere"} is asked of ${snapshotter ?? "nobody"}`, async () => {
    const asked: unknown[] = [];
    const measure = liveLayers({
      containerdUsage: async (request, namespace) => {
        asked.push({ ...request, namespace });
        return { size: 5n, inodes: 2n };
      },
    });
    const found = await measure({ id: "c", mountpoint }, never);
    assert.deepEqual(asked, snapshotter === undefined ? [] : [{ snapshotter, key: "c", namespace: "k8s.io" }]);
    assert.deepEqual(found, snapshotter === undefined ? undefined : { bytes: 5, inodes: 2 });
  });
}
