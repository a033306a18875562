import assert from "node:assert/strict";
import { test } from "node:test";
import { type DiskUse, reliefFor, useFor } from "./usage.ts";

const disk: DiskUse = {
  layers: { bytes: 1, inodes: 10 },
  logs: { bytes: 2, inodes: 20 },
  ownVolumes: { bytes: 4, inodes: 40 },
  hostVolumes: { bytes: 8, inodes: 80 },
};
for (const [layout, signal, counts, frees] of [
  ["one disk for all", "nodefs.available", 15, 5],
  ["one disk for all", "imagefs.inodesFree", 150, 50],
  ["images apart", "nodefs.available", 14, 4],
  ["images apart", "imagefs.available", 1, 1],
  ["images apart", "containerfs.available", 1, 1],
  ["containers apart", "nodefs.available", 15, 5],
  ["containers apart", "containerfs.inodesFree", 150, 50],
  ["containers apart", "imagefs.available", 0, 0],
] as const) {
  test(`disk use, ${layout}: ${signal} counts ${counts}, and ${frees} go with the pod`, () => {
    assert.equal(useFor(signal, { disk }, layout), counts);
    assert.equal(reliefFor(signal, { disk }, layout), frees);
  });
}
