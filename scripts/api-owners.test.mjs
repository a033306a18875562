import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { agentSources, apiOwners, canWrite, writesIn } from "./api-owners.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const sources = agentSources(root);
const rows = apiOwners.flatMap(({ objects, verbs, owner }) =>
  objects.flatMap((object) => verbs.map((verb) => ({ write: `${verb} ${object}`, owner }))),
);
const ownerOf = new Map(rows.map(({ write, owner }) => [write, owner]));

test("writes are found, with the resource by name or in a variable", () => {
  assert.deepEqual(writesIn("a.ts", "await client.create(resources.pods, {}, pod, signal);"), [
    { verb: "create", object: "pods" },
  ]);
  assert.deepEqual(writesIn("a.ts", "ports.client.patch(\n  resources.nodes,\n  ref);"), [
    { verb: "patch", object: "nodes" },
  ]);
  const variable = "const one = resources.leases; client.update(one, ref, lease);";
  assert.deepEqual(writesIn("a.ts", variable), [{ verb: "update", object: "leases" }]);
  assert.throws(() => writesIn("a.ts", `${variable} resources.pods`), /which resource is one\?/);
  assert.deepEqual(writesIn("a.ts", "map.delete(key, other); client.get(resources.pods, ref)"), []);
});

test("who can write is known by its type", () => {
  assert.equal(canWrite('  readonly client: Pick<KubeClient, "get" | "patch">;'), true);
  assert.equal(canWrite("function f(client: KubeClient) {"), true);
  assert.equal(canWrite('  readonly client: Pick<KubeClient, "get">;'), false);
  assert.equal(canWrite('import { type KubeClient } from "./index.ts";'), false);
});

test("each write of the API has one owner, and only the owner writes", () => {
  assert.equal(ownerOf.size, rows.length, "a write has two owners");
  const found = new Set();
  for (const { name, text } of sources) {
    for (const { verb, object } of writesIn(name, text)) {
      const owner = ownerOf.get(`${verb} ${object}`);
      assert.ok(owner !== undefined, `nobody owns "${verb} ${object}" of ${name}`);
      assert.ok(name === owner || name.startsWith(`${owner}/`), `${name}: ${verb} ${object} belongs to ${owner}`);
      found.add(`${verb} ${object}`);
    }
  }
  assert.deepEqual([...found].sort(), [...ownerOf.keys()].sort(), "the table names what nobody writes");
});

test("no client that can write is held by who writes nothing, or out of this check's sight", () => {
  const idle = sources.filter(({ name, text }) => canWrite(text) && writesIn(name, text).length === 0);
  assert.deepEqual(
    idle.map(({ name }) => name),
    [],
  );
});

test("docs/architecture.md shows this table", () => {
  const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
  const shown = [...page.matchAll(/^\| [^|]+ \| `([\w, ]+)`: ([\w, ]+?) +\| `([\w./-]+)` +\|$/gm)].map(
    ([, objects, verbs, owner]) => ({ objects: objects.split(", "), verbs: verbs.split(", "), owner }),
  );
  assert.deepEqual(shown, apiOwners);
});
