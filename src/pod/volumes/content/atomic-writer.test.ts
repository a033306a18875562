import assert from "node:assert/strict";
import { lstat, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { writeAtomically } from "./atomic-writer.ts";
import { type Content, ContentError, checkPath } from "./content.ts";

let directory: string;
let volumes = 0;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-writer-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const options = { now: () => Date.UTC(2026, 0, 2, 15, 4, 5), random: Math.random };

async function newVolume(): Promise<string> {
  const volume = join(directory, `volume-${++volumes}`);
  await mkdir(volume);
  return volume;
}

function content(files: Readonly<Record<string, string>>, mode = 0o644): Content {
  return new Map(Object.entries(files).map(([path, text]) => [path, { bytes: Buffer.from(text), mode }]));
}

/** Files as a reader of the volume sees them. */
async function seen(volume: string): Promise<Record<string, string>> {
  const result: Record<string, string> = {};
  const look = async (path: string): Promise<void> => {
    for (const name of (await readdir(join(volume, path))).sort()) {
      if (name.startsWith("..")) continue;
      const below = join(path, name);
      if ((await stat(join(volume, below))).isDirectory()) await look(below);
      else result[below] = await readFile(join(volume, below), "utf8");
    }
  };
  await look("");
  return result;
}

test("the form on disk: a stamped directory, ..data, one link per first path element", async () => {
  const volume = await newVolume();
  assert.equal(await writeAtomically(volume, content({ key: "1", "dir/a": "2", "dir/b/c": "3" }), options), "written");
  const version = await readlink(join(volume, "..data"));
  assert.match(version, /^\.\.2026_01_02_15_04_05\.\d{9}$/);
  assert.equal((await stat(join(volume, version))).mode & 0o7777, 0o755);
  assert.deepEqual((await readdir(volume)).sort(), ["..data", version, "dir", "key"].sort());
  assert.equal(await readlink(join(volume, "key")), "..data/key");
  assert.equal(await readlink(join(volume, "dir")), "..data/dir");
  assert.deepEqual(await seen(volume), { "dir/a": "2", "dir/b/c": "3", key: "1" });
});

test("changes: new content, added and removed paths, and the old directory goes", async () => {
  const volume = await newVolume();
  await writeAtomically(volume, content({ a: "1", "d/x": "1", gone: "1" }), options);
  const first = await readlink(join(volume, "..data"));
  assert.equal(await writeAtomically(volume, content({ a: "2", "d/y": "1", more: "1" }), options), "written");
  assert.deepEqual(await seen(volume), { a: "2", "d/y": "1", more: "1" });
  assert.equal((await readdir(volume)).includes(first), false);
  assert.equal(await writeAtomically(volume, new Map(), options), "written");
  assert.deepEqual(await seen(volume), {});
  assert.equal((await readdir(volume)).length, 2);
});

test("the same bytes are not written again, not even for another mode; missing links come back", async () => {
  const volume = await newVolume();
  await writeAtomically(volume, content({ a: "1", b: "2" }), options);
  const version = await readlink(join(volume, "..data"));
  await rm(join(volume, "b"));
  assert.equal(await writeAtomically(volume, content({ a: "1", b: "2" }, 0o600), options), "unchanged");
  assert.equal(await readlink(join(volume, "..data")), version);
  assert.equal((await stat(join(volume, "a"))).mode & 0o777, 0o644);
  assert.equal(await readFile(join(volume, "b"), "utf8"), "2");
});

test("modes are exact whatever the umask, and owners are set", { skip: process.getuid?.() !== 0 }, async () => {
  const volume = await newVolume();
  const before = process.umask(0o077);
  try {
    const files = new Map([
      ["open", { bytes: Buffer.from(""), mode: 0o666 }],
      ["mine", { bytes: Buffer.from(""), mode: 0o400, uid: 1234 }],
    ]);
    await writeAtomically(volume, files, options);
  } finally {
    process.umask(before);
  }
  assert.equal((await stat(join(volume, "open"))).mode & 0o7777, 0o666);
  const { mode, uid } = await stat(join(volume, "mine"));
  assert.deepEqual([mode & 0o7777, uid], [0o400, 1234]);
});

test("readers see all of the old or all of the new, never a mixture", async () => {
  const volume = await newVolume();
  await writeAtomically(volume, content({ a: "0", b: "0" }), options);
  let writing = true;
  const writer = (async () => {
    for (let turn = 1; turn <= 100; turn++) {
      await writeAtomically(volume, content({ a: String(turn), b: String(turn) }), options);
    }
    writing = false;
  })();
  let reads = 0;
  while (writing) {
    // A program reads a consistent set by resolving ..data once.
    const version = await readlink(join(volume, "..data"));
    const read = (name: string) => readFile(join(volume, version, name), "utf8").catch(() => undefined);
    const [a, b] = await Promise.all([read("a"), read("b")]);
    if (a === undefined || b === undefined) continue;
    assert.equal(a, b);
    reads++;
  }
  await writer;
  assert.ok(reads > 0);
});

test("what a crash left behind is mended: half-written versions, a temporary link, stale links", async () => {
  const volume = await newVolume();
  await writeAtomically(volume, content({ a: "1" }), options);
  await mkdir(join(volume, "..2025_01_01_00_00_00.000000001"));
  await writeFile(join(volume, "..2025_01_01_00_00_00.000000001/a"), "half");
  await symlink("..2025_01_01_00_00_00.000000001", join(volume, "..data_tmp"));
  await symlink("..data/stale", join(volume, "stale"));
  await writeAtomically(volume, content({ a: "2" }), options);
  const version = await readlink(join(volume, "..data"));
  assert.deepEqual((await readdir(volume)).sort(), ["..data", version, "a"].sort());
});

test("a failure before the swap leaves the old content and nothing new", async () => {
  const volume = await newVolume();
  await writeAtomically(volume, content({ a: "1" }), options);
  const failing = { ...options, beforeSwap: () => Promise.reject(new Error("no owner")) };
  await assert.rejects(writeAtomically(volume, content({ a: "2" }), failing), /no owner/);
  assert.deepEqual(await seen(volume), { a: "1" });
  assert.equal((await readdir(volume)).length, 3);
});

test("a ..data link that leads elsewhere is replaced, never followed", async () => {
  const volume = await newVolume();
  const outside = join(directory, "outside");
  await mkdir(outside, { recursive: true });
  await writeFile(join(outside, "precious"), "1");
  await symlink(outside, join(volume, "..data"));
  await writeAtomically(volume, content({ a: "1" }), options);
  assert.deepEqual(await seen(volume), { a: "1" });
  assert.equal(await readFile(join(outside, "precious"), "utf8"), "1");
});

test("directories that others put into the volume stay", async () => {
  const volume = await newVolume();
  await mkdir(join(volume, "nested"));
  await writeAtomically(volume, content({ a: "1", nested: "conflict" }), options);
  assert.equal((await lstat(join(volume, "nested"))).isDirectory(), true);
  assert.equal(await readFile(join(volume, "a"), "utf8"), "1");
});

for (const [path, problem] of [
  ["", /must not be empty/],
  ["/etc/passwd", /must be relative/],
  ["../x", /must not contain '\.\.'/],
  ["a/../../x", /must not contain '\.\.'/],
  ["..data", /must not start with '\.\.'/],
  ["..data/x", /must not start with '\.\.'/],
  ["..2026", /must not start with '\.\.'/],
  ["x".repeat(256), /more than 255 characters/],
  [`${"a/".repeat(2048)}x`, /at most 4096 characters/],
  ["a\0b", /NUL/],
] as const) {
  test(`path ${JSON.stringify(path.slice(0, 20))} is refused and nothing is written`, async () => {
    assert.throws(() => checkPath(path), problem);
    const volume = await newVolume();
    await assert.rejects(writeAtomically(volume, content({ good: "1", [path]: "2" }), options), ContentError);
    assert.deepEqual(await readdir(volume), []);
  });
}

for (const path of ["a", "a/b", "a..b", "a/..b", ".hidden", "x".repeat(255)]) {
  test(`path ${JSON.stringify(path.slice(0, 20))} is allowed`, () => checkPath(path));
}

test("two paths that mean the same file are an error", async () => {
  const volume = await newVolume();
  await assert.rejects(writeAtomically(volume, content({ a: "1", "a/b": "2" }), options), /EEXIST|ENOTDIR/);
  assert.deepEqual(await readdir(volume), []);
});
