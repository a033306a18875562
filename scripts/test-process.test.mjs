import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runTestFile } from "./test-process.mjs";

const directory = mkdtempSync(join(tmpdir(), "nodelet-test-process-"));
after(() => rmSync(directory, { recursive: true }));

const passes = 'test("a", () => {});';
const hangs = "setInterval(() => {}, 1_000);";
for (const [name, text, expected, words] of [
  ["tests that pass", `${passes} test("b", { skip: true }, () => {});`, [1, 0, 1], /✔ a /],
  ["a test that fails", `${passes} test("b", () => { throw new Error("odd"); });`, [1, 1, 0], /odd/],
  [
    "a suite that can't begin",
    'describe("s", () => { before(() => { throw new Error("odd"); }); test("b", () => {}); });',
    [0, 1, 0],
    /odd/,
  ],
  [
    "a suite that can't end",
    `describe("s", () => { after(() => { throw new Error("odd"); }); ${passes} });`,
    [1, 1, 0],
    /odd/,
  ],
  ["no test at all", "", [0, 1, 0], /the process ended with 0, after 0 tests/],
  ["a file that can't be read", "}", [0, 1, 0], /SyntaxError/],
  ["an exit amid the tests", `${passes} test("b", () => process.exit(0));`, [0, 1, 0], /the process ended with 0/],
  ["a death amid the tests", `${passes} test("b", () => process.kill(process.pid, "SIGKILL"));`, [0, 1, 0], /SIGKILL/],
  [
    "what does not end",
    `${passes} ${hangs}`,
    [0, 1, 0],
    /not done within 3 s[\s\S]*where it was: [\s\S]*open: .*timer/,
  ],
  [
    "what takes too much memory",
    `test("b", () => { const taken = Buffer.alloc(600 * 2 ** 20, 1); ${hangs} return new Promise(() => taken); });`,
    [0, 1, 0],
    /took more than 500 MB[\s\S]*where it was: /,
  ],
]) {
  test(`${name}: ${expected.join(" ")} passed, failed, skipped`, async () => {
    const file = join(directory, "tried.mjs");
    writeFileSync(file, `import { after, before, describe, test } from "node:test"; ${text}`);
    // Enough for all but the one that hangs, on a busy machine too.
    const timeoutMs = text.includes(hangs) && !text.includes("taken") ? 3_000 : 100_000;
    const { passed, failed, skipped, printed } = await runTestFile(file, { timeoutMs, mostMb: 500 });
    assert.deepEqual([passed, failed, skipped], expected, printed);
    assert.match(printed, words);
  });
}
