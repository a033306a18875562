import assert from "node:assert/strict";
import { chmod, lchown, lstat, mkdir, mkdtemp, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { giveToGroup } from "./fs-group-ownership.ts";

let directory: string;
let roots = 0;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-group-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const needsRoot = { skip: process.getuid?.() === 0 ? false : "giving files away needs root" };
const never = new AbortController().signal;
const silent = { onFiles() {}, onProblem() {} };
const gid = 4321;

async function newRoot(mode = 0o755): Promise<string> {
  const root = join(directory, `root-${++roots}`);
  await mkdir(root);
  await chmod(root, mode);
  return root;
}

async function look(path: string): Promise<readonly [mode: string, gid: number]> {
  const found = await lstat(path);
  return [(found.mode & 0o7777).toString(8), found.gid];
}

for (const { readOnly, file, directoryMode } of [
  { readOnly: false, file: "660", directoryMode: "2770" },
  { readOnly: true, file: "440", directoryMode: "2550" },
] as const) {
  test(`modes grow by what the group needs: ${readOnly ? "read-only" : "writable"}`, needsRoot, async () => {
    const root = await newRoot(0o000);
    await mkdir(join(root, "d"), { mode: 0o000 });
    await writeFile(join(root, "d/f"), "", { mode: 0o000 });
    await chmod(join(root, "d/f"), 0o000);
    const result = await giveToGroup(root, { gid, readOnly, policy: "Always" }, silent, never);
    assert.deepEqual(result, { files: 3 });
    assert.deepEqual(await look(join(root, "d/f")), [file, gid]);
    assert.deepEqual(await look(join(root, "d")), [directoryMode, gid]);
    assert.deepEqual(await look(root), [directoryMode, gid]);
  });
}

test("bits that are there stay; links are given away but never followed", needsRoot, async () => {
  const root = await newRoot();
  const outside = join(directory, "outside-file");
  await writeFile(outside, "", { mode: 0o600 });
  await writeFile(join(root, "program"), "");
  await chmod(join(root, "program"), 0o4755);
  await symlink(outside, join(root, "link"));
  await giveToGroup(root, { gid, readOnly: false, policy: "Always" }, silent, never);
  assert.deepEqual(await look(join(root, "program")), ["4775", gid]);
  assert.equal((await lstat(join(root, "link"))).gid, gid);
  assert.deepEqual(await look(outside), ["600", 0]);
});

for (const { name, mode, group, expected } of [
  { name: "all is as wanted", mode: 0o2770, group: gid, expected: "skipped" },
  { name: "another group", mode: 0o2770, group: 0, expected: "walked" },
  { name: "no set-group bit", mode: 0o770, group: gid, expected: "walked" },
  { name: "the group may not write", mode: 0o2750, group: gid, expected: "walked" },
] as const) {
  test(`OnRootMismatch: ${name}`, needsRoot, async () => {
    const root = await newRoot();
    await writeFile(join(root, "f"), "");
    await lchown(root, 0, group);
    await chmod(root, mode);
    const result = await giveToGroup(root, { gid, readOnly: false, policy: "OnRootMismatch" }, silent, never);
    assert.equal(result === "skipped" ? result : "walked", expected);
    assert.equal((await lstat(join(root, "f"))).gid, expected === "walked" ? gid : 0);
  });
}

test("OnRootMismatch: a read-only volume needs no write permission", needsRoot, async () => {
  const root = await newRoot();
  await lchown(root, 0, gid);
  await chmod(root, 0o2550);
  assert.equal(await giveToGroup(root, { gid, readOnly: true, policy: "OnRootMismatch" }, silent, never), "skipped");
});

test("an interrupted walk shows at the top, and says how far it came", needsRoot, async () => {
  const root = await newRoot();
  await mkdir(join(root, "d"));
  for (let index = 0; index < 1_100; index++) await writeFile(join(root, "d", `f${index}`), "");
  const stop = new AbortController();
  const reports: number[] = [];
  const onFiles = (files: number): void => {
    reports.push(files);
    stop.abort(new Error("enough"));
  };
  const walk = giveToGroup(root, { gid, readOnly: false, policy: "Always" }, { ...silent, onFiles }, stop.signal);
  await assert.rejects(walk, /enough/);
  assert.deepEqual(reports, [1_000]);
  assert.equal((await lstat(root)).gid, 0, "so that OnRootMismatch starts over");
});

test("a file that vanishes in mid-walk fails it, so that it is tried again", needsRoot, async () => {
  const root = await newRoot();
  for (let index = 0; index < 2_000; index++) await writeFile(join(root, `f${index}`), "");
  const onFiles = (): void => {
    for (let index = 0; index < 2_000; index++) unlink(join(root, `f${index}`)).catch(() => {});
  };
  const walk = giveToGroup(root, { gid, readOnly: false, policy: "Always" }, { ...silent, onFiles }, never);
  await assert.rejects(walk, { code: "ENOENT" });
});
