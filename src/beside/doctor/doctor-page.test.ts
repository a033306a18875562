import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checkGroups } from "./groups.ts";

test("the page lists every check, and no other", () => {
  const page = readFileSync(new URL("../../../docs/doctor.md", import.meta.url), "utf8");
  const [, table = ""] = page.split("doctor-page.test.ts. -->\n");
  const rows = table
    .split("\n")
    .filter((line) => line.startsWith("| "))
    .slice(1)
    .map((line) =>
      line
        .split("|")
        .map((cell) => cell.trim())
        .slice(1, 4),
    );
  const wanted = checkGroups.flatMap(({ name, checks }) => checks.map(({ id, title }) => [id, name, title]));
  assert.deepEqual(
    rows.filter(([id]) => !/^-+$/.test(id ?? "")),
    wanted,
  );
});

test("every check has an id of its own, a title and a reason", () => {
  const checks = checkGroups.flatMap((group) => group.checks);
  assert.equal(new Set(checks.map(({ id }) => id)).size, checks.length);
  for (const { id, title, why } of checks) {
    assert.ok(title !== "" && why !== "", id);
    assert.match(title, /^\S.*[^.]$/, id);
  }
});
