import assert from "node:assert/strict";
import { test } from "node:test";
import { table } from "./table.ts";

test("a table has its own rows and none that every object has", () => {
  const ages = table({ ann: 1 });
  assert.equal(ages["ann"], 1);
  for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"]) {
    assert.equal(ages[name], undefined, name);
    assert.equal(name in ages, false, name);
  }
});
