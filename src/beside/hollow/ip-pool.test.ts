import assert from "node:assert/strict";
import { test } from "node:test";
import { IpPool } from "./ip-pool.ts";

test("addresses come lowest first, return, and run out", () => {
  const pool = new IpPool("10.1.2.0/29");
  const all = Array.from({ length: 5 }, () => pool.take());
  assert.deepEqual(all, ["10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.5", "10.1.2.6"]);
  assert.equal(pool.take(), undefined);
  pool.release("10.1.2.4");
  assert.equal(pool.take(), "10.1.2.4");
});

test("ranges wider than one byte", () => {
  const pool = new IpPool("10.88.0.0/16");
  const taken = Array.from({ length: 300 }, () => pool.take());
  assert.equal(taken[253], "10.88.0.255");
  assert.equal(taken[254], "10.88.1.0");
  assert.equal(new Set(taken).size, 300);
});
