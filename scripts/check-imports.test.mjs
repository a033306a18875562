import assert from "node:assert/strict";
import { test } from "node:test";
import { checkTree, importProblems } from "./check-imports.mjs";

test("the tree keeps the direction of imports", () => assert.deepEqual(checkTree(), []));

for (const { file, text, problem } of [
  {
    file: "ground/base/clock.ts",
    text: 'import { x } from "../model/index.ts";',
    problem: /may not import from ground\/model/,
  },
  {
    file: "pod/status/a.ts",
    text: 'import type { W } from "../workers/index.ts";',
    problem: /may not import from pod\/workers/,
  },
  {
    file: "connections/cri/a.ts",
    text: 'export { k } from "../kube/index.ts";',
    problem: /may not import from connections\/kube/,
  },
  { file: "pod/workers/a.ts", text: 'import { s } from "../status/compute.ts";', problem: /through its index/ },
  {
    file: "agent/a.ts",
    text: 'const m = await import("../beside/hollow/index.ts");',
    problem: /may not import from beside\/hollow/,
  },
  { file: "ground/model/a.ts", text: 'import { f } from "../../../test/support/x.ts";', problem: /outside src/ },
  { file: "helpers/a.ts", text: "", problem: /lies in no folder/ },
  { file: "pod/helpers/a.ts", text: "", problem: /lies in no folder/ },
  { file: "agent/a.ts", text: 'import { h } from "../pod/helpers.ts";', problem: /may not import from pod/ },
]) {
  test(`${file}: ${text} is refused`, () => assert.match(importProblems(file, text).join("\n"), problem));
}

for (const { file, text } of [
  { file: "pod/workers/a.ts", text: 'import { s } from "../status/index.ts";' },
  {
    file: "pod/workers/a.test.ts",
    text: 'import { s } from "../../beside/hollow/index.ts";\nimport x from "../../../test/support/x.ts";',
  },
  { file: "main.ts", text: 'import { run } from "./agent/index.ts";' },
]) {
  test(`${file}: ${text} is fine`, () => assert.deepEqual(importProblems(file, text), []));
}
