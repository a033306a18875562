// What the documents say of the tree must be so: links lead somewhere, files that are named exist, the map is the listing.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { allowedImports } from "./import-rules.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(join(root, path), "utf8");
const documents = [
  "README.md",
  "CONTRIBUTING.md",
  ...readdirSync(join(root, "docs"), { recursive: true })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
];
const decisions = documents.filter((path) => /^docs\/decisions\/\d{4}-/.test(path)).sort();

test("no line of the README is longer than 120 columns", () => {
  const long = read("README.md")
    .split("\n")
    .filter((line) => [...line].length > 120);
  assert.deepEqual(long, []);
});

test("every link to a file leads to one", () => {
  const broken = documents.flatMap((path) =>
    [...read(path).matchAll(/\]\(([^)#\s:]+)(?:#[^)]*)?\)/g)]
      .map(([, target]) => target)
      .filter((target) => !existsSync(join(root, dirname(path), target)))
      .map((target) => `${path}: ${target}`),
  );
  assert.deepEqual(broken, []);
});

test("a decision's number is given once, and the index has them all", () => {
  const numbers = decisions.map((path) => basename(path).slice(0, 4));
  assert.deepEqual(numbers, [...new Set(numbers)]);
  for (const path of decisions) assert.match(read(path), new RegExp(`^# ${basename(path).slice(0, 4)}: `), path);
  const indexed = [...read("docs/decisions/README.md").matchAll(/^- \[\d{4}\]\((\d{4}-[^)]+)\)/gm)].map(
    ([, name]) => name,
  );
  assert.deepEqual(
    indexed,
    decisions.map((path) => basename(path)),
  );
});

test("files that the map, the glossary and the list of mended defects name exist", () => {
  const papers = ["architecture", "glossary", "style", "mended-defects"].map((name) => `docs/${name}.md`);
  const named = papers.flatMap((document) =>
    [
      ...read(document).matchAll(
        /`(test\/(?:node|fuzz|vm)\/[\w./-]+|(?:src\/)?(?:agent|pod|node|connections|ground|beside)\/[\w./-]+)`/g,
      ),
    ].map(([, path]) => path.replace(/^(?!src\/|test\/)/, "src/")),
  );
  assert.ok(named.length > 20);
  assert.deepEqual(
    named.filter((path) => !existsSync(join(root, path))),
    [],
  );
});

test("files that comments of the code name exist", () => {
  const inTree = (top) => readdirSync(join(root, top), { recursive: true }).map((name) => join(top, name));
  const tree = ["src", "test", "scripts", "bench"].flatMap(inTree);
  const known = new Set(tree.map((path) => basename(path)));
  const comments = /^\s*(?:\/\/|\/?\*).*$/gm;
  const missing = tree
    .filter((path) => path.startsWith("src/") && /\.tsx?$/.test(path) && !path.includes("/gen/"))
    .flatMap((path) =>
      [...read(path).matchAll(comments)]
        .flatMap(([comment]) => [...comment.matchAll(/(?<![\w/.*-])([a-z][\w-]*(?:\.test)?\.(?:tsx?|mjs))\b/g)])
        .filter(([, name]) => !known.has(name))
        .map(([, name]) => `${path}: ${name}`),
    );
  assert.deepEqual(missing, []);
});

test("the map of the architecture is the listing of src/", () => {
  const [, map] = /```\nsrc\/\n([\s\S]*?)\ntest\//.exec(read("docs/architecture.md")) ?? [];
  const drawn = [];
  let group = "";
  for (const line of map.split("\n")) {
    const [, indent, name] = /^( +)([\w.]+)\/? {2,}/.exec(line) ?? assert.fail(`the map has an odd line: ${line}`);
    if (indent.length === 2) group = name;
    drawn.push(indent.length === 2 ? name : `${group}/${name}`);
  }
  const folders = readdirSync(join(root, "src"), { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory() || Object.hasOwn(allowedImports, entry.name)) return [entry.name];
    return [entry.name, ...readdirSync(join(root, "src", entry.name)).map((name) => `${entry.name}/${name}`)];
  });
  assert.deepEqual([...drawn].sort(), folders.sort());
});
