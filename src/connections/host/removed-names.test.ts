import assert from "node:assert/strict";
import { mkdtempSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { RemovedNames } from "./removed-names.ts";

test("what was deleted or moved away is told, also when it is back; what was replaced is not", async () => {
  const directory = mkdtempSync(join(tmpdir(), "nodelet-removed-"));
  const elsewhere = mkdtempSync(join(tmpdir(), "nodelet-elsewhere-"));
  const at = (name: string): string => join(directory, name);
  for (const name of ["back", "gone", "replaced", "backedUp", "away", "written"]) writeFileSync(at(name), "1");
  using removed = await RemovedNames.of(directory);
  assert.deepEqual([...removed.take()], []);
  unlinkSync(at("back"));
  writeFileSync(at("back"), "1");
  unlinkSync(at("gone"));
  writeFileSync(at(".new"), "2");
  renameSync(at(".new"), at("replaced"));
  renameSync(at("backedUp"), at("backedUp~"));
  writeFileSync(at("backedUp"), "2");
  renameSync(at("away"), join(elsewhere, "away"));
  writeFileSync(at("written"), "2");
  assert.deepEqual([...removed.take()].sort(), ["away", "back", "gone"]);
  assert.deepEqual([...removed.take()], []);
  for (let index = 0; index < 3_000; index++) {
    writeFileSync(at(`many-${index}`), "");
    unlinkSync(at(`many-${index}`));
  }
  assert.equal(removed.take().size, 3_000);
  for (const path of [directory, elsewhere]) rmSync(path, { recursive: true });
});
