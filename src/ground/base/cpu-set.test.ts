import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { CpuSet, CpuSetError } from "./cpu-set.ts";

for (const [text, shown] of [
  ["", ""],
  ["  \n", ""],
  ["3,0-1,1", "0-1,3"],
  ["1-1", "1"],
  ["31-33", "31-33"],
  ["0,2,4-7,5\n", "0,2,4-7"],
] as const) {
  test(`${JSON.stringify(text)} is shown as "${shown}"`, () => assert.equal(CpuSet.parse(text).toString(), shown));
}

for (const text of ["a", "1-", "-1", "0,,1", "1 2", "65536", "0-99999999", "0x1"]) {
  test(`${text} is refused`, () => assert.throws(() => CpuSet.parse(text), CpuSetError));
}

test("a range that falls says so", () => {
  assert.throws(() => CpuSet.parse("3-1"), { message: 'invalid range "3-1" (3 > 1)' });
});

test("sets behave as sets of numbers do, and survive their text", () => {
  const cpus = fc.uniqueArray(fc.nat(300));
  fc.assert(
    fc.property(cpus, cpus, (one, other) => {
      const [a, b] = [CpuSet.of(one), CpuSet.of(other)];
      const sorted = (list: Iterable<number>): readonly number[] => [...new Set(list)].sort((x, y) => x - y);
      assert.deepEqual([...a.with(b)], sorted([...one, ...other]));
      assert.deepEqual([...a.without(b)], sorted(one.filter((cpu) => !other.includes(cpu))));
      assert.deepEqual([...a.and(b)], sorted(one.filter((cpu) => other.includes(cpu))));
      assert.equal(a.sizeOfCommon(b), a.and(b).size);
      assert.equal(
        a.isWithin(b),
        one.every((cpu) => other.includes(cpu)),
      );
      assert.equal(a.size, one.length);
      assert.ok(one.every((cpu) => a.has(cpu)) && !a.has(301) && !a.has(100_000));
      assert.ok(CpuSet.parse(a.toString()).equals(a));
    }),
  );
});
