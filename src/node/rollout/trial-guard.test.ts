import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { hungNoteName, readHungNote } from "./hung-note.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-guard-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const root = fileURLToPath(new URL("../../..", import.meta.url));
const program = join(directory, "guarded-process.mjs");
// As the agent is built: a thread that is translated as it is loaded waits for the loop that is blocked.
before(() =>
  build({
    absWorkingDir: root,
    entryPoints: ["test/support/guarded-process.ts", "src/node/rollout/trial-guard-thread.ts"],
    entryNames: "[name]",
    outdir: directory,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    format: "esm",
    platform: "node",
    packages: "external",
  }),
);

for (const { how, end } of [
  { how: "blocked", end: "SIGKILL" },
  { how: "forgotten", end: "SIGKILL" },
  { how: "looked after", end: 0 },
  { how: "released", end: 0 },
]) {
  test(`a process whose trial is ${how} ends with ${end}`, async () => {
    const place = mkdtempSync(join(directory, "place-"));
    const child = spawn(process.execPath, [program, how, place], { stdio: "inherit" });
    const [code, signal] = await once(child, "exit");
    assert.equal(code ?? signal, end);
    const note = await readFile(join(place, hungNoteName), "utf8").catch(() => undefined);
    if (end === 0) assert.equal(note, undefined);
    else
      assert.deepEqual(readHungNote(note ?? ""), {
        version: "v1",
        why: "the agent was stuck with it for 3 s, and was killed",
      });
  });
}
