import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { recordIo } from "../../../test/support/command-io.ts";
import { configBackCommand, configKeepCommand, configTryCommand } from "./config-trial-command.ts";
import type { Command } from "./io.ts";

const changes = [{ name: "maxPods", from: 110, to: 50, when: "with a restart" }];
const trial = { version: "t", remainingMs: 60_000, mustBeKept: true };
const report = { active: { version: "t" }, trial, error: "", isFollowed: false, refused: [], history: [] };
const asked: string[] = [];
let rootDir = "";

/** An agent that tries whatever it is given. */
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? "", "http://localhost");
  asked.push(pathname);
  response.end(JSON.stringify(pathname === "/rollout/try" ? { version: "t", changes } : report));
});
before(async () => {
  rootDir = await mkdtemp(join(tmpdir(), "nodelet-trial-"));
  await writeFile(join(rootDir, "new.yaml"), "maxPods: 50\n");
  await new Promise<void>((resolve) => server.listen(join(rootDir, "nodelet.sock"), resolve));
});
after(async () => {
  server.close();
  await rm(rootDir, { recursive: true });
});

for (const { name, command, file, outcome, words } of [
  {
    name: "try",
    command: configTryCommand,
    file: true,
    outcome: { state: "works", remainingMs: 60_000, changes },
    words: /^maxPods: 110 -> 50\n {4}with a restart\nThe agent runs with it and works. It goes back in 60 s/,
  },
  { name: "keep", command: configKeepCommand, file: false, outcome: { state: "kept" }, words: /^It stays/ },
  { name: "back", command: configBackCommand, file: false, outcome: { state: "back" }, words: /^The agent goes back/ },
]) {
  test(`config ${name}: for programs one object with the version and what became of it, for people words`, async () => {
    const run = async (asProgram: readonly string[]): Promise<string> => {
      const { io, stdout } = recordIo("/");
      const operands = file ? [join(rootDir, "new.yaml")] : [];
      assert.equal(await (command as Command)([...operands, `--root-dir=${rootDir}`, ...asProgram], io), 0);
      return stdout();
    };
    for (const wish of [["-o", "json"], ["--json"]]) {
      const answer = JSON.parse(await run(wish));
      assert.deepEqual(answer, { apiVersion: "nodelet.dev/v1", kind: "ConfigTrial", version: "t", ...outcome });
    }
    assert.match(await run([]), words);
    assert.equal(asked.filter((path) => path === `/rollout/${name}`).length, 3);
  });
}
