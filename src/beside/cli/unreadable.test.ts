import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { configDiffCommand } from "./config-trial-command.ts";
import { dashboardCommand } from "./dashboard-command.ts";
import { countPods } from "./manifests.ts";
import { unreadable } from "./unreadable.ts";

for (const [code, words] of [
  ["ENOENT", "there is no file /x"],
  ["EACCES", "/x is not for you to read; try again with sudo"],
  ["EIO", "EIO: what the system says"],
] as const) {
  test(`a file that can't be read for ${code} is told of in words`, () => {
    const error = Object.assign(new Error(`${code}: what the system says`), { code });
    assert.equal((unreadable(error, "/x") as Error).message, words);
  });
}

test("commands say in words which file they can't read", async () => {
  const rootDir = await mkdtemp(join(tmpdir(), "nodelet-unreadable-"));
  try {
    const said = async (command: typeof configDiffCommand, ...words: readonly string[]): Promise<string> => {
      const { io, stderr } = recordIo("/");
      assert.equal(await command([...words, `--root-dir=${rootDir}`], io), 1);
      return stderr();
    };
    assert.equal(await said(configDiffCommand, "/no/where"), "nodelet config diff: there is no file /no/where\n");
    assert.equal(
      await said(configDiffCommand, rootDir),
      `nodelet config diff: ${rootDir} is a directory, not a file\n`,
    );
    const tokens = join(rootDir, "nodelet", "dashboard.json");
    await mkdir(tokens, { recursive: true });
    assert.equal(await said(dashboardCommand), `nodelet dashboard: ${tokens} is a directory, not a file\n`);
    // As a loss of power leaves it.
    await rm(tokens, { recursive: true });
    await writeFile(tokens, "");
    assert.match(await said(dashboardCommand), /no agent answers at/);
    const agent = createServer((_, response) => void response.end("ok"));
    agent.listen(join(rootDir, "nodelet.sock"));
    await once(agent, "listening");
    assert.match(await said(dashboardCommand), /has no dashboard/);
    agent.close();
  } finally {
    await rm(rootDir, { recursive: true });
  }
});

test("manifests that are nowhere are missed by the name of their directory", async () => {
  await assert.rejects(countPods("/no/where"), /^Error: there is no directory \/no\/where;/);
  await assert.rejects(countPods("/etc/hostname"), /^Error: there is no directory \/etc\/hostname;/);
});
