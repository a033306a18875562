// The drawings of docs/architecture.md must be so: import directions, wiring, the walk of a pod and other ways.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { allowedImports } from "./import-rules.mjs";

const mostHops = 20;
const mostHopsInAgent = 2;
const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path) => readFileSync(join(root, path), "utf8");
const page = read("docs/architecture.md");
const section = (title) => {
  const from = page.indexOf(`## ${title}`);
  assert.ok(from >= 0, `the page has no section "${title}"`);
  return page.slice(from, page.indexOf("\n## ", from + 1));
};
const agentFiles = readdirSync(join(root, "src/agent"))
  .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
  .map((name) => ({ name, text: read(`src/agent/${name}`) }));

test("the drawing of import directions is the table of import rules", () => {
  const [, drawing] = /```\nmain +agent\n([\s\S]*?)```/.exec(page) ?? assert.fail("no drawing");
  const rows = drawing
    .trim()
    .split("\n")
    .map((line) => /^(\w+) +(.*)$/.exec(line).slice(1));
  const drawn = new Map();
  for (const [group, row] of rows.slice(1)) {
    const chains = row.split(/ {3,}/).map((chain) => chain.split(" > "));
    const names = [...new Set(chains.flat())];
    for (const name of names) {
      const later = chains.flatMap((chain) => (chain.includes(name) ? chain.slice(chain.indexOf(name) + 1) : []));
      drawn.set(`${group}/${name}`, [...new Set(later)].map((each) => `${group}/${each}`).sort());
    }
  }
  const folders = Object.keys(allowedImports).filter((folder) => folder.includes("/"));
  assert.deepEqual([...drawn.keys()].sort(), folders.sort());
  for (const [folder, later] of drawn) {
    const group = folder.split("/")[0];
    const inGroup = allowedImports[folder].filter((other) => other.startsWith(`${group}/`));
    assert.deepEqual(inGroup.sort(), later, folder);
  }
  const below = { agent: ["pod", "node", "connections", "ground"], ...{ connections: ["ground"], ground: [] } };
  for (const [folder, allowed] of Object.entries(allowedImports)) {
    const group = folder.split("/")[0];
    const others = new Set(allowed.map((other) => other.split("/")[0]).filter((other) => other !== group));
    const legal = below[group] ?? (group === "node" ? ["pod", "connections", "ground"] : ["connections", "ground"]);
    if (folder === "main.ts") continue;
    for (const other of others) assert.ok(legal.includes(other), `${folder} may import ${other}/`);
  }
});

test("the parts are made in the order that is drawn", () => {
  const [, drawn] = /```\n(base > [\w >]+)\n```/.exec(section("How the agent is wired")) ?? assert.fail("no order");
  const text = read("src/agent/build-agent.ts");
  const [, body] = /export function buildAgent\([^)]*\): Agent \{\n([\s\S]*?)\n\}/.exec(text);
  const made = [...body.matchAll(/^ {2}const (?:\{ (\w+)[^}]*\}|(\w+))(?::[^=]+)? = /gm)].map(
    ([, first, one]) => first ?? one,
  );
  const parts = [...text.matchAll(/^ {2}readonly (\w+): [^;]+;$/gm)].map(([, name]) => name);
  assert.deepEqual(
    drawn.split(" > "),
    made.filter((name) => parts.includes(name)),
  );
});

test("topics are told and heard where the table says", () => {
  const shown = [...section("How the agent is wired").matchAll(/^\| `(\w+)` +\| ([^|]+) \| ([^|]+) \|$/gm)].map(
    ([, topic, tellers, listeners]) => ({ topic, told: filesIn(tellers), heard: filesIn(listeners) }),
  );
  const topics = [...read("src/agent/wakes.ts").matchAll(/^ {2}readonly (\w+) = new Topic/gm)].map(([, name]) => name);
  const who = (topic, verb) =>
    agentFiles.filter(({ text }) => new RegExp(`wakes\\.${topic}\\.${verb}\\b`).test(text)).map(({ name }) => name);
  assert.deepEqual(
    shown,
    topics.map((topic) => ({ topic, told: who(topic, "tell"), heard: who(topic, "on") })),
  );
});

function filesIn(cell) {
  return [...cell.matchAll(/`([\w.-]+)`/g)].map(([, name]) => name);
}

/** The numbered rows of a section: each hands on to the next. */
const hopsOf = (title) =>
  [...section(title).matchAll(/^\| (\d+) +\| `(#?\w+)` +\| `([\w./-]+)` +\| `([^`]+)` +\| [^|]+ \|$/gm)].map(
    ([, number, name, file, reachedBy]) => ({ number: Number(number), name, file, reachedBy }),
  );
const hops = hopsOf("How a pod walks");

test("the walk of a pod is short, and passes agent/ by", () => {
  assert.deepEqual(
    hops.map(({ number }) => number),
    hops.map((_, index) => index + 1),
  );
  assert.ok(hops.length > 10 && hops.length <= mostHops, `${hops.length} hops`);
  assert.ok(hops.filter(({ file }) => file.startsWith("agent/")).length <= mostHopsInAgent);
});

for (const [title, rows] of [
  ["How a pod walks", 20],
  ["How a change of a config map reaches a file", 9],
  ["How a static pod goes", 11],
]) {
  test(`${title}: each row is a function of its file, and is reached as the page says`, () => {
    const way = hopsOf(title);
    assert.deepEqual(
      way.map(({ number }) => number),
      Array.from({ length: rows }, (_, index) => index + 1),
    );
    assertReached(way);
  });
}

function assertReached(hops) {
  for (const [index, { name, file, reachedBy }] of hops.entries()) {
    const text = read(`src/${file}`);
    const defined = new RegExp(
      `^(?:export )?(?: {2}| {4})?(?:readonly |async |function\\*? )*${name}(?:<[^(]*>)?(?:\\(| = )`,
      "m",
    );
    assert.match(text, defined, `${file} has no ${name}`);
    // By who hands it on, by who takes it, or by the wiring.
    const before = hops[index - 1];
    const places = [
      text,
      ...(before === undefined ? [] : [read(`src/${before.file}`)]),
      ...agentFiles.map((each) => each.text),
    ];
    const next = hops[index + 1];
    if (next !== undefined) places.push(read(`src/${next.file}`));
    // Back from the runtime, the worker goes on.
    if (name === "publishStatus") places.push(read("src/pod/workers/sync-running.ts"));
    assert.ok(
      places.some((place) => place.includes(reachedBy)),
      `nobody says ${reachedBy} near ${file}`,
    );
  }
}

test("the drawing of the walk has the hops in the folders of the table", () => {
  const drawn = [...section("How a pod walks").matchAll(/\[(\d+)(?:-(\d+))? ([\w/]+)\]/g)].map(
    ([, from, to, folder]) => ({
      from: Number(from),
      to: Number(to ?? from),
      folder,
    }),
  );
  const ordered = drawn.toSorted((a, b) => a.from - b.from);
  assert.deepEqual(
    ordered.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, index) => from + index)),
    hops.map(({ number }) => number),
  );
  for (const { from, to, folder } of drawn) {
    for (const { number, file } of hops.slice(from - 1, to)) {
      assert.ok(file.startsWith(`${folder}/`), `hop ${number} (${file}) is drawn in ${folder}`);
    }
  }
});
