// What is removed before any pod has to go.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EvictionSignal } from "../../../ground/config/index.ts";
import { reclaimFor } from "./planner.ts";
import type { DiskLayout } from "./signals.ts";

for (const [signal, layout, expected] of [
  ["memory.available", "one disk for all", ""],
  ["pid.available", "images apart", ""],
  ["nodefs.available", "one disk for all", "containers images"],
  ["imagefs.inodesFree", "one disk for all", "containers images"],
  ["nodefs.available", "images apart", ""],
  ["imagefs.available", "images apart", "containers images"],
  ["containerfs.available", "images apart", "containers images"],
  ["nodefs.inodesFree", "containers apart", "containers"],
  ["imagefs.available", "containers apart", "images"],
  ["containerfs.available", "containers apart", "containers"],
] satisfies readonly (readonly [EvictionSignal, DiskLayout, string])[]) {
  test(`before pods, ${layout}: ${signal} frees ${expected || "nothing"}`, () => {
    assert.equal(reclaimFor({ signal }, layout).join(" "), expected);
  });
}
