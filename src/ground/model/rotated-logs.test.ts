import assert from "node:assert/strict";
import { test } from "node:test";
import { rotatedLogs, rotationStamp } from "./rotated-logs.ts";

test("rotated logs: oldest first, each once, nothing else", () => {
  const names = [
    "0.log",
    "0.log.20260102-030405",
    "0.log.20260101-000000.gz",
    "0.log.20251231-235959.gz",
    "0.log.20251231-235959",
    "0.log.20260103-000000.tmp",
    "0.log.20260103-000000.gz.tmp",
    "0.log.old",
    "10.log.20260101-000000",
    "1.log.20260101-000000",
  ];
  assert.deepEqual(rotatedLogs("0.log", names), [
    { name: "0.log.20251231-235959", stamp: "20251231-235959", compressed: false },
    { name: "0.log.20260101-000000.gz", stamp: "20260101-000000", compressed: true },
    { name: "0.log.20260102-030405", stamp: "20260102-030405", compressed: false },
  ]);
});

test("the stamp of a rotation is local time and later than any before", () => {
  const now = new Date(2026, 0, 2, 3, 4, 5);
  assert.equal(rotationStamp(now, undefined), "20260102-030405");
  assert.equal(rotationStamp(now, "20260102-030404"), "20260102-030405");
  assert.equal(rotationStamp(now, "20260102-030405"), "20260102-030406");
  assert.equal(rotationStamp(now, "20261231-235959"), "20270101-000000");
});
