import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { saveFile, savePrivateFile } from "./saved-file.ts";

// That it lasts through a loss of power is shown in test/vm/power-cut.test.ts: nothing less than that shows it.
const directory = mkdtempSync(join(tmpdir(), "nodelet-saved-"));
after(() => rmSync(directory, { recursive: true }));

test("a saved file replaces the old one whole, has the mode asked for, and leaves nothing beside it", async () => {
  const path = join(directory, "replaced");
  writeFileSync(path, "a text that is longer than the new one", { mode: 0o644 });
  // An earlier run that was killed left this.
  writeFileSync(`${path}.tmp`, "unfinished and longer than the new one", { mode: 0o666 });
  await saveFile(path, "new", 0o600);
  assert.equal(readFileSync(path, "utf8"), "new");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(directory), ["replaced"]);
});

test("a private file gets the directories it needs, which nobody else may enter", async () => {
  const path = join(directory, "a", "b", "c", "private");
  await savePrivateFile(path, "secret");
  assert.equal(readFileSync(path, "utf8"), "secret");
  assert.equal(statSync(path).mode & 0o777, 0o600);
  for (const made of ["a", "a/b", "a/b/c"]) assert.equal(statSync(join(directory, made)).mode & 0o777, 0o700);
});

test("a file that cannot be written leaves the old one alone", async () => {
  const path = join(directory, "kept");
  await saveFile(path, "old", 0o600);
  await assert.rejects(saveFile(join(path, "below-a-file"), "new", 0o600));
  assert.equal(readFileSync(path, "utf8"), "old");
});

test("a long text may come in pieces, each of which is made when the one before is written", async () => {
  const path = join(directory, "pieces");
  const made: number[] = [];
  function* pieces(): Generator<string> {
    for (let piece = 0; piece < 3; piece++) {
      made.push(readFileSync(`${path}.tmp`, "utf8").length);
      yield "ab";
    }
  }
  await saveFile(path, pieces(), 0o600);
  assert.equal(readFileSync(path, "utf8"), "ababab");
  assert.deepEqual(made, [0, 2, 4]);
});
