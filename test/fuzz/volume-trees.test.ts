import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { link, lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countFiles, HeldDirectory, removeTree } from "../../src/connections/host/index.ts";
import { giveToGroup } from "../../src/pod/volumes/content/fs-group-ownership.ts";
import { type FuzzRandom, fuzzTest } from "./fuzzing.ts";

const never = new AbortController().signal;
const whole = { depth: "all" } as const;
const silent = { onFiles() {}, onProblem() {} };
const ownership = { gid: 4321, readOnly: false, policy: "Always" } as const;
const asRoot = process.getuid?.() === 0;

fuzzTest("trees of any names and shapes: counted as du does, given to a group, removed whole", async (run) => {
  const base = await mkdtemp(join(tmpdir(), "nodelet-fuzz-trees-"));
  const outside = join(base, "outside");
  await mkdir(outside);
  await writeFile(join(outside, "precious"), "1", { mode: 0o600 });
  try {
    for (let turn = 0; run.goesOn(); turn++) {
      const root = join(base, `tree-${turn}`);
      await makeTree(root, outside, run.random);
      assert.deepEqual(await countFiles(root, whole, never), du(root));
      if (asRoot) {
        await giveToGroup(root, ownership, silent, never);
        await assertGiven(root);
      }
      if (run.random.below(2) === 0) await whileItChanges(root, run.random);
      await removeTree(root);
      assert.equal(existsSync(root), false);
      assert.deepEqual((await readdir(base)).sort(), ["outside"], "nothing is left beside it");
      assert.equal(await readFile(join(outside, "precious"), "utf8"), "1");
      assert.equal((await lstat(join(outside, "precious"))).mode & 0o777, 0o600);
    }
  } finally {
    await rm(base, { recursive: true, force: true }).catch(() => execFileSync("rm", ["-rf", base]));
  }
});

/** Another process moves, makes and removes directories; nothing may fail by that but giving to a group, and that cleanly. */
async function whileItChanges(root: string, random: FuzzRandom): Promise<void> {
  const child = disturb(root);
  const ended = once(child, "exit");
  try {
    for (let look = 0; look < 3 + random.below(5); look++) {
      await countFiles(root, whole, never);
      if (asRoot) await giveToGroup(root, ownership, silent, never).catch(isPassing);
    }
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
}

/** Not ":", whose failed redirection ends a shell. */
function disturb(root: string): ChildProcess {
  const script =
    'cd "$1" || exit; while :; do mkdir -p m/a/b/c/d; true > m/a/b/f; mv m/a/b n 2>/dev/null; rm -rf m; ln -s / m 2>/dev/null; rm -f m; rm -rf n; done';
  return spawn("sh", ["-c", script, "sh", root], { stdio: "ignore" });
}

function isPassing(error: unknown): void {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const isExpected = ["ENOENT", "ENOTDIR", "ELOOP"].includes(code) || /moved away/.test(String(error));
  if (!isExpected) throw error;
}

async function makeTree(root: string, outside: string, random: FuzzRandom): Promise<void> {
  await mkdir(root);
  const directories: string[] = [root];
  const files: Buffer[] = [];
  for (let count = random.below(150); count > 0; count--) {
    // Of known places only: a path of bytes is made once, at the end of it.
    const place = below(random.pick(directories), oddName(random));
    const kind = random.below(12);
    try {
      if (kind < 3) {
        const plain = join(random.pick(directories), `d${count}`);
        await mkdir(plain);
        directories.push(plain);
      } else if (kind < 5) await mkdir(place);
      else if (kind === 5) await symlink(random.pick([outside, "/", "nowhere", root, ".."]), place);
      else if (kind === 6 && files.length > 0) await link(random.pick(files), place);
      else if (kind === 7) execFileSync("mkfifo", [join(random.pick(directories), `fifo${count}`)]);
      else {
        await writeFile(place, Buffer.alloc(random.below(50_000), 1), { flag: "wx" });
        files.push(place);
      }
    } catch (error) {
      const code = error instanceof Error && "code" in error ? error.code : undefined;
      if (code !== "EEXIST") throw error;
    }
  }
  if (random.below(4) === 0) await makeDeep(root, 1 + random.below(250), random);
}

async function makeDeep(root: string, levels: number, random: FuzzRandom): Promise<void> {
  let held = await HeldDirectory.open(root);
  for (let depth = 0; depth < levels; depth++) {
    const name = oddName(random);
    await mkdir(held.path(name)).catch(() => {});
    const next = await held.enter(name).catch(() => undefined);
    if (next === undefined) break;
    held.close();
    held = next;
  }
  held.close();
}

function oddName(random: FuzzRandom): Buffer {
  const length = random.below(4) === 0 ? 1 + random.below(255) : 1 + random.below(8);
  const name = Buffer.from(random.bytes(length)).map((byte) => (byte === 0 || byte === 47 ? 1 : byte));
  return name.every((byte) => byte === 46) ? Buffer.from("dots") : Buffer.from(name);
}

function below(path: string, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${path}/`), name]);
}

function du(path: string): { bytes: number; inodes: number } {
  const ask = (flag: string) =>
    Number(execFileSync("du", ["-s", "-x", flag, path], { encoding: "utf8" }).split("\t")[0] ?? "0");
  return { bytes: ask("-k") * 1024, inodes: ask("--inodes") };
}

async function assertGiven(root: string): Promise<void> {
  const others = execFileSync("find", [root, "!", "-gid", String(ownership.gid)], { encoding: "utf8" });
  assert.equal(others, "", "all of it has the group");
}
