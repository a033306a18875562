import assert from "node:assert/strict";
import { test } from "node:test";
import { checkTree, importProblems, sharedNames } from "./check-imports.mjs";

const indexes = new Set(["connections/kube/access/index.ts"]);

test("the tree keeps the direction of imports, and names have one home", () => assert.deepEqual(checkTree(), []));

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
  {
    file: "pod/volumes/kinds/a.ts",
    text: 'import { e } from "../manager/places.ts";',
    problem: /may not import from pod\/volumes\/manager/,
  },
  {
    file: "connections/kube/transport/a.ts",
    text: 'import { c } from "../client.ts";',
    problem: /may not import from the files of connections\/kube/,
  },
  {
    file: "connections/kube/client.ts",
    text: 'import { c } from "./access/credentials.ts";',
    problem: /must enter connections\/kube\/access\/ through its index/,
  },
  {
    file: "beside/cli/a.ts",
    text: 'import { CriClient } from "../../connections/cri/index.ts";',
    problem: /may not import from connections\/cri/,
  },
  { file: "pod/runtime/index.ts", text: 'export * from "./graceful-stop.ts";', problem: /must name what it exports/ },
]) {
  test(`${file}: ${text} is refused`, () => assert.match(importProblems(file, text, indexes).join("\n"), problem));
}

for (const { file, text } of [
  { file: "pod/workers/a.ts", text: 'import { s } from "../status/index.ts";' },
  {
    file: "pod/workers/a.test.ts",
    text: 'import { s } from "../../beside/hollow/index.ts";\nimport x from "../../../test/support/x.ts";',
  },
  { file: "main.ts", text: 'import { run } from "./agent/index.ts";' },
  { file: "beside/cli/a.ts", text: 'import type { CriClient } from "../../connections/cri/index.ts";' },
  { file: "beside/cli/a.ts", text: 'const { CriClient } = await import("../../connections/cri/index.ts");' },
  { file: "pod/volumes/manager/a.ts", text: 'import { k } from "../kinds/kind.ts";' },
  { file: "connections/kube/client.ts", text: 'import { c } from "./access/index.ts";' },
  { file: "connections/kube/access/a.ts", text: 'import { c } from "./credentials.ts";' },
]) {
  test(`${file}: ${text} is fine`, () => assert.deepEqual(importProblems(file, text, indexes), []));
}

test("a name that two files export is refused, overloads and tests are not", () => {
  const files = [
    ["pod/a.ts", "export function one(): void;\nexport function one(x?: 1): void {}\nexport class Two {}"],
    ["pod/a.test.ts", "export class Two {}"],
    ["pod/b.ts", "export interface Two {}\nclass One {}"],
  ];
  assert.deepEqual(sharedNames(files.slice(0, 2)), []);
  assert.deepEqual(sharedNames(files), ["pod/a.ts and pod/b.ts export a Two each"]);
});
