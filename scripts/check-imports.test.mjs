import assert from "node:assert/strict";
import { test } from "node:test";
import { checkTree, importProblems } from "./check-imports.mjs";

test("the tree keeps the direction of imports", () => assert.deepEqual(checkTree(), []));

for (const { file, text, problem } of [
  { file: "base/clock.ts", text: 'import { x } from "../model/index.ts";', problem: /may not import from model/ },
  {
    file: "status/a.ts",
    text: 'import type { W } from "../workers/index.ts";',
    problem: /may not import from workers/,
  },
  { file: "cri/a.ts", text: 'export { k } from "../kube/index.ts";', problem: /may not import from kube/ },
  { file: "workers/a.ts", text: 'import { s } from "../status/compute.ts";', problem: /through its index/ },
  { file: "agent/a.ts", text: 'const m = await import("../hollow/index.ts");', problem: /may not import from hollow/ },
  { file: "model/a.ts", text: 'import { f } from "../../test/support/x.ts";', problem: /outside src/ },
]) {
  test(`${file}: ${text} is refused`, () => assert.match(importProblems(file, text).join("\n"), problem));
}

for (const { file, text } of [
  { file: "workers/a.ts", text: 'import { s } from "../status/index.ts";' },
  {
    file: "workers/a.test.ts",
    text: 'import { s } from "../hollow/index.ts";\nimport x from "../../test/support/x.ts";',
  },
  { file: "main.ts", text: 'import { run } from "./agent/index.ts";' },
]) {
  test(`${file}: ${text} is fine`, () => assert.deepEqual(importProblems(file, text), []));
}
