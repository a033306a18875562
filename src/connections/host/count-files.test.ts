import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MadeUpFiles } from "../../../test/support/made-up-files.ts";
import { never } from "../../ground/base/index.ts";
import { countFiles } from "./count-files.ts";

test("counts as du does, deep or only directly in a directory", async () => {
  using made = new MadeUpFiles({ "a/one": "x".repeat(10_000), "a/b/two": "y".repeat(30_000) });
  const path = join(made.root, "a");
  linkSync(join(path, "one"), join(path, "b/again"));
  mkdirSync(join(path, "b/empty"));
  // Names are bytes, and need not be text.
  writeFileSync(Buffer.concat([Buffer.from(`${path}/b/`), Buffer.from([0xff, 0xfe])]), "z".repeat(20_000));
  const [kib] = execFileSync("du", ["-sk", path], { encoding: "utf8" }).split("\t");
  const whole = await countFiles(path, { depth: "all" }, never);
  assert.equal(whole.bytes, Number(kib) * 1024);
  assert.equal(whole.inodes, 6);
  const shallow = await countFiles(path, { depth: "files directly in it" }, never);
  assert.equal(shallow.inodes, 1);
  assert.ok(shallow.bytes < whole.bytes);
  assert.equal((await countFiles(join(path, "one"), { depth: "all" }, never)).inodes, 1);
  await assert.rejects(countFiles(join(path, "none"), { depth: "all" }, never), { code: "ENOENT" });
});
