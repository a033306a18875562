import assert from "node:assert/strict";
import { test } from "node:test";
import { terminalSize } from "./terminal-size.ts";

test("a terminal that does not know its size is one of 80 columns, not of none", () => {
  assert.deepEqual(terminalSize({ columns: 0, rows: 0 }), { columns: 80, rows: 24 });
  assert.deepEqual(terminalSize({}), { columns: 80, rows: 24 });
  assert.deepEqual(terminalSize({ columns: 132, rows: 50 }), { columns: 132, rows: 50 });
});
