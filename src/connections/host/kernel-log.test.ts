import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { KernelLog, type KernelRecord } from "./kernel-log.ts";

function all(log: KernelLog): readonly KernelRecord[] {
  const found: KernelRecord[] = [];
  for (;;) {
    const records = log.read(500);
    found.push(...records);
    if (records.length < 500) return found;
  }
}

test("the kernel's own words in order, none of programs that pretend to be it, and never a wait", async () => {
  await using log = await KernelLog.open();
  const before = all(log);
  const mark = `nodelet-test-${process.pid}`;
  // Its own facility, as far as a program can ask for it.
  writeFileSync("/dev/kmsg", `<4>${mark} invoked oom-killer:`);
  const after = all(log);
  assert.ok(![...before, ...after].some(({ text }) => text.includes(mark)));
  const numbers = before.map(({ seq }) => seq).filter((seq) => seq >= 0);
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
  );
});
