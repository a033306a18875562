import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../ground/base/index.ts";

const keeper = fileURLToPath(new URL("../../../bin/keep-running", import.meta.url));
let directory: string;
before(async () => {
  directory = await mkdtemp(join(tmpdir(), "keep-running-"));
});
after(() => rm(directory, { recursive: true }));

/** Keeps a shell running that notes each of its starts in a file. */
function keep(
  name: string,
  script: string,
): { readonly child: ChildProcess; starts(atLeast: number): Promise<string[]> } {
  const file = join(directory, name);
  const child = spawn(keeper, ["sh", "-c", `echo $$ >> ${file}; ${script}`], { stdio: "ignore" });
  const starts = async (atLeast: number): Promise<string[]> => {
    for (;;) {
      const text = await readFile(file, "utf8").catch(() => "");
      const lines = text.split("\n").filter((line) => line !== "");
      if (lines.length >= atLeast) return lines;
      await systemClock.sleep(20, AbortSignal.timeout(60_000));
    }
  };
  return { child, starts };
}

test("a program that is killed is started again, and ends with its keeper", async () => {
  const { child, starts } = keep("killed", "exec sleep 1000");
  const exited = once(child, "exit");
  const [first] = await starts(1);
  process.kill(Number(first), "SIGKILL");
  const [, second] = await starts(2);
  assert.notEqual(second, first);
  child.kill("SIGTERM");
  await exited;
  assert.throws(() => process.kill(Number(second), 0), /ESRCH/);
  assert.equal((await starts(2)).length, 2);
});

test("a program that takes its time to end is waited for", async () => {
  const { child, starts } = keep("slow", 'trap "sleep 0.3; exit 0" TERM; while :; do sleep 0.05; done');
  const exited = once(child, "exit");
  const [pid] = await starts(1);
  child.kill("SIGTERM");
  const [code] = await exited;
  assert.equal(code, 0);
  assert.throws(() => process.kill(Number(pid), 0), /ESRCH/);
});

test("a program that ends well is done", async () => {
  const { child, starts } = keep("done", "exit 0");
  const [code] = await once(child, "exit");
  assert.equal(code, 0);
  assert.equal((await starts(1)).length, 1);
});
