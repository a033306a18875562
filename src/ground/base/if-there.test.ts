import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ifThere, isThere } from "./if-there.ts";

const directory = await mkdtemp(join(tmpdir(), "nodelet-there-"));
test.after(() => rm(directory, { recursive: true }));
await writeFile(join(directory, "file"), "text");

test("what is there is given", async () => {
  assert.equal(await ifThere(readFile(join(directory, "file"), "utf8")), "text");
  assert.deepEqual(await ifThere(readdir(directory), []), ["file"]);
  assert.equal(await isThere(join(directory, "file")), true);
});

test("what isn't there is undefined, or what the caller has instead", async () => {
  assert.equal(await ifThere(readFile(join(directory, "none"), "utf8")), undefined);
  assert.deepEqual(await ifThere(readdir(join(directory, "none")), []), []);
  assert.deepEqual(await ifThere(readdir(join(directory, "file", "below")), []), [], "below what is no directory");
  assert.equal(await isThere(join(directory, "none")), false);
});

test("what can't be looked at is a failure", async () => {
  await assert.rejects(ifThere(readFile(directory, "utf8")), { code: "EISDIR" });
});
