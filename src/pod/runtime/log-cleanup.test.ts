import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { loadSyscalls, unmountFlags } from "../../connections/host/index.ts";
import { foreseePodLogs, removeContainerLogs, removePodLogs } from "./log-cleanup.ts";

let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "nodelet-log-cleanup-"));
});
after(() => rm(directory, { recursive: true, force: true }));

const never = new AbortController().signal;
const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
// No text: what would be taken for it names another file.
const odd = Buffer.from([0x66, 0xff, 0xfe]);
const inDirectory = (path: string, name: Buffer): Buffer => Buffer.concat([Buffer.from(`${path}/`), name]);

test("a pod's logs that can't be removed keep back nobody else's, and names are bytes", needsRoot, async () => {
  const pods = join(directory, "pods");
  const stuck = join(pods, "n_a_uid-a/mounted");
  await mkdir(stuck, { recursive: true });
  for (const name of ["n_b_uid-b", "n_c_uid-c", "n_d_uid-d"]) await mkdir(join(pods, name));
  await mkdir(inDirectory(pods, odd));
  await writeFile(inDirectory(join(pods, "n_c_uid-c"), odd), "");
  await writeFile(join(pods, "file"), "");
  const calls = await loadSyscalls();
  calls.mount("tmpfs", stuck, "tmpfs", 0, "size=64k");
  try {
    const mayRemove = (uid: string): boolean => uid !== "uid-d";
    await assert.rejects(removePodLogs(pods, mayRemove, never), /mounted: it is a mount point/);
    assert.deepEqual((await readdir(pods)).sort(), ["file", "n_a_uid-a", "n_d_uid-d"]);
  } finally {
    await calls.unmount(stuck, unmountFlags.detach);
  }
  assert.equal(await removePodLogs(pods, (uid) => uid !== "uid-d", never), 1);
  assert.equal(await removePodLogs(pods, (uid) => uid !== "uid-d", never), 0);
});

test("a container's logs go with all that begins like them, whatever bytes follow", async () => {
  const pods = join(directory, "links");
  await mkdir(join(directory, "real/n_a_uid-a/main/0.log.d"), { recursive: true });
  // Where the logs are may be told by a link.
  await symlink(join(directory, "real"), pods);
  const logs = join(pods, "n_a_uid-a/main");
  for (const name of ["0.log", "0.log.20260101-000000.gz", "1.log"]) await writeFile(join(logs, name), "");
  await writeFile(inDirectory(logs, Buffer.concat([Buffer.from("0.log"), odd])), "");
  await writeFile(inDirectory(join(logs, "0.log.d"), odd), "");
  const container = { id: "id", logPath: join(logs, "0.log") };
  const directories = { podLogsDir: pods, legacyDir: join(directory, "legacy") };
  assert.equal(await removeContainerLogs(container, directories), "removed");
  assert.deepEqual(await readdir(logs), ["1.log"]);
  assert.equal(await removePodLogs(pods, () => true, never), 1);
});

test("what would be removed of logs is what is removed, with its size", async () => {
  const pods = join(directory, "foreseen");
  await mkdir(join(pods, "default_gone_uid-g", "main"), { recursive: true });
  await writeFile(join(pods, "default_gone_uid-g", "main", "0.log"), "x".repeat(10_000));
  await mkdir(join(pods, "default_here_uid-h"));
  await writeFile(join(pods, "default_file_uid-g"), "no directory");
  const mayRemove = (uid: string): boolean => uid === "uid-g";
  const foreseen = await foreseePodLogs(pods, mayRemove, never);
  assert.deepEqual(
    foreseen.map(({ directory, sizeBytes }) => [directory, sizeBytes >= 10_000]),
    [["default_gone_uid-g", true]],
  );
  assert.equal(await removePodLogs(pods, mayRemove, never), foreseen.length);
  assert.deepEqual(await foreseePodLogs(pods, mayRemove, never), []);
});
