import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { lstat, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { countFiles, HeldDirectory, removeTree, type TreeVisitor, walkTree } from "../../../connections/host/index.ts";
import { uidOf } from "../../../ground/model/index.ts";
import { giveToGroup } from "../content/fs-group-ownership.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-odd-"));
});
after(() => execFileSync("rm", ["-rf", directory]));

const needsRoot = { skip: process.getuid?.() === 0 ? false : "giving files away needs root" };
const never = new AbortController().signal;
const whole = { depth: "all" } as const;
const silent = { onFiles() {}, onProblem() {} };
const gid = 4321;

function below(path: string, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${path}/`), name]);
}

function du(path: string): { bytes: number; inodes: number } {
  const ask = (...flags: string[]) =>
    Number(execFileSync("du", ["-s", "-x", ...flags, path], { encoding: "utf8" }).split("\t")[0] ?? "0");
  return { bytes: ask("-k") * 1024, inodes: ask("--inodes") };
}

/** So deep that no path leads to the end; returns the number of levels. */
async function makeDeep(root: string, levels: number, name: string): Promise<void> {
  await mkdir(root);
  let held = await HeldDirectory.open(root);
  for (let depth = 0; depth < levels; depth++) {
    await mkdir(held.path(name));
    const next = await held.enter(name);
    held.close();
    held = next;
  }
  await writeFile(held.path("at the end"), Buffer.alloc(100_000, 1));
  held.close();
}

const oddNames = [
  ["Latin-1", Buffer.from("r\xe9sum\xe9", "latin1")],
  [
    "every byte that can be in a name",
    Buffer.from([...Array(255).keys()].map((code) => code + 1).filter((c) => c !== 47)),
  ],
  ["half of a character", Buffer.from([0xe3, 0x81])],
  ["the sign for what is no text", Buffer.from("\ufffd")],
  ["lines and dashes", Buffer.from("-rf \n*")],
] as const;

for (const [kind, name] of oddNames) {
  test(`names are bytes: ${kind}`, needsRoot, async () => {
    const root = await mkdtemp(join(directory, "names-"));
    await mkdir(below(root, name));
    await writeFile(Buffer.concat([below(root, name), Buffer.from("/"), name]), Buffer.alloc(300_000, 1));
    assert.deepEqual(await countFiles(root, whole, never), du(root));
    await giveToGroup(root, { gid, readOnly: false, policy: "Always" }, silent, never);
    assert.equal((await lstat(Buffer.concat([below(root, name), Buffer.from("/"), name]))).gid, gid);
    await removeTree(root);
    assert.equal(existsSync(root), false);
  });
}

test("a pod with such names in its scratch volume is measured, and leaves nothing", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const pod = podWithVolumes([{ name: "v", emptyDir: { sizeLimit: "1Mi" } }]);
  await node.volumes.mount(pod, never);
  const path = node.volumePath(uidOf(pod), "kubernetes.io/empty-dir", "v");
  for (const [, name] of oddNames) {
    await mkdir(below(path, name));
    await writeFile(Buffer.concat([below(path, name), Buffer.from("/"), name]), Buffer.alloc(1_000_000, 1));
  }
  const [measured] = await node.volumes.measure(uidOf(pod), never);
  assert.ok((measured?.usage.usedBytes ?? 0n) > 5_000_000n, String(measured?.usage.usedBytes));
  await node.volumes.unmount(uidOf(pod));
  const report = await node.volumes.cleanOrphanedDirectories(new Set(), never);
  assert.deepEqual([report.problems, await readdir(node.podsDir)], [[], []]);
});

test("a tree of thousands of levels costs few descriptors, and all of it counts", needsRoot, async () => {
  const root = join(directory, "deep");
  const levels = 1_000;
  await makeDeep(root, levels, "d");
  const open = (): number => readdirSync("/proc/self/fd").length;
  const before = open();
  let most = 0;
  const turn = async (): Promise<void> => {
    most = Math.max(most, open());
  };
  const { bytes, inodes } = await countFiles(root, { depth: "all", pace: turn }, never);
  assert.equal(inodes, levels + 2);
  assert.ok(bytes > 100_000, String(bytes));
  assert.ok(most - before < 100, `${most - before} descriptors for ${levels} levels`);
  const { files } = (await giveToGroup(root, { gid, readOnly: false, policy: "Always" }, silent, never)) as {
    files: number;
  };
  assert.equal(files, levels + 2);
  await removeTree(root);
  assert.equal(existsSync(root), false);
  assert.equal(open(), before, "all descriptors are given back");
});

test("deep directories with the longest names there are, two of them side by side", async () => {
  const roots = [join(directory, "long-1"), join(directory, "long-2")];
  await Promise.all(roots.map((root) => makeDeep(root, 250, "あ".repeat(85))));
  await Promise.all(roots.map((root) => removeTree(root)));
  assert.deepEqual(
    (await readdir(directory)).filter((name) => name.startsWith("long") || name.startsWith(".")),
    [],
  );
});

test("directories with more directories than the walk remembers are seen whole", async () => {
  const root = await mkdtemp(join(directory, "wide-"));
  for (const name of ["a", "b"]) {
    await mkdir(join(root, name));
    for (let index = 0; index < 400; index++) await mkdir(join(root, name, `${"x".repeat(200)}${index}`));
  }
  const seen = new Set<string>();
  using held = await HeldDirectory.open(root);
  const entries: TreeVisitor["entries"] = async (_directory, found) => {
    for (const { name } of found) seen.add(name.toString());
    return found.map(({ name }) => name);
  };
  await walkTree(held, { entries, whenGone: "fail" }, never, { levels: 1, names: 10 });
  assert.equal(seen.size, 402);
});

test("a large directory above deep ones is read once, not anew after each of them", async (t) => {
  const root = await mkdtemp(join(directory, "comb-"));
  for (let index = 0; index < 100; index++)
    await mkdir(join(root, "many", String(index), "a/b/c"), { recursive: true });
  using held = await HeldDirectory.open(root);
  const read = t.mock.method(HeldDirectory.prototype, "read");
  let seen = 0;
  const entries: TreeVisitor["entries"] = async (_directory, found) => {
    seen += found.length;
    return found.map(({ name }) => name);
  };
  await walkTree(held, { entries, whenGone: "fail" }, never, { levels: 3, names: 1 });
  assert.equal(seen, 401);
  assert.equal(read.mock.callCount(), 402);
});

test("a directory that is moved away in mid-walk ends the walk through it, not the walk", async () => {
  const root = join(directory, "moving");
  await makeDeep(root, 200, "d");
  await mkdir(join(root, "other"));
  const elsewhere = join(directory, "moved");
  let entered = 0;
  using held = await HeldDirectory.open(root);
  await walkTree(
    held,
    {
      entries: async (_directory, entries) => entries.filter((entry) => entry.isDirectory()).map(({ name }) => name),
      enter: async () => {
        if (++entered === 100) await rename(join(root, "d/d/d"), elsewhere);
      },
      whenGone: "skip",
    },
    never,
  );
  assert.ok(entered >= 200, String(entered));
  await rm(elsewhere, { recursive: true, force: true });
  const counted = await countFiles(root, whole, never);
  assert.equal(counted.inodes, du(root).inodes);
});
