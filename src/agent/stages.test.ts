import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkSwap, dataDirectories, holdLockFile } from "../connections/host/index.ts";
import { silentLogger, systemClock, TaskScope } from "../ground/base/index.ts";
import { amountsOf, overReserved } from "../ground/model/index.ts";
import { Ending } from "./ending.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-stages-"));
after(() => rmSync(directory, { recursive: true, force: true }));

test("directories and their modes", () => {
  const settings = { rootDir: "/r", podLogsDir: "/logs" };
  const octal = (checkpoints: boolean) =>
    dataDirectories({ ...settings, checkpoints }).map(([path, mode]) => `${path} ${mode.toString(8)}`);
  const always = ["/logs 750", "/r/pods 750", "/r/plugins 750", "/r/plugins_registry 750", "/r/pod-resources 750"];
  assert.deepEqual(octal(false), [...always, "/var/log/containers 755"]);
  assert.deepEqual(octal(true), [...always, "/r/checkpoints 700", "/var/log/containers 755"]);
});

for (const { failSwapOn, swaps, problem } of [
  { failSwapOn: true, swaps: [], problem: undefined },
  { failSwapOn: true, swaps: ["/dev/b"], problem: /swap on is not supported.*\/dev\/b/ },
  { failSwapOn: false, swaps: ["/dev/b"], problem: undefined },
]) {
  test(`failSwapOn ${failSwapOn} with ${swaps.length} swap devices`, () => {
    if (problem === undefined) assert.doesNotThrow(() => checkSwap(failSwapOn, swaps));
    else assert.throws(() => checkSwap(failSwapOn, swaps), { message: problem });
  });
}

test("a node that keeps more for itself than there is does not start, in the kubelet's words", () => {
  const capacity = amountsOf({ cpu: "2", memory: "1Gi" });
  const settings = { maxPods: 1, podsPerCore: 0, localStorageIsolation: false, hardEviction: {} };
  const check = (cpu: string, memory: string) =>
    overReserved(capacity, { ...settings, reserved: amountsOf({ cpu, memory }) });
  assert.equal(check("2", "1Gi"), undefined);
  assert.equal(
    check("2500m", "2Gi"),
    'invalid Node Allocatable configuration. Resource "cpu" has a reservation of 2500m but capacity of 2. Expected capacity >= reservation. Resource "memory" has a reservation of 2Gi but capacity of 1Gi. Expected capacity >= reservation.',
  );
});

test("ending: the first reason counts", async () => {
  const ending = new Ending();
  ending.request("first");
  ending.request("second");
  assert.equal(await ending.reached(), "first");
});

test("ending: a task that fails is a failure, a scope that is stopped is nothing", async () => {
  const ending = new Ending();
  const stopped = new TaskScope();
  ending.follow(stopped);
  await stopped.stop();
  assert.equal(ending.signal.aborted, false);
  await using failing = new TaskScope();
  ending.follow(failing);
  failing.spawn("listener", async () => {
    throw new Error("broke");
  });
  await assert.rejects(ending.reached(), /task "listener" failed/);
});

test("lock file: exit on contention needs one", async () => {
  await using scope = new TaskScope();
  const ports = { clock: systemClock, log: silentLogger, scope, ending: new Ending() };
  await assert.rejects(
    holdLockFile({ lockFile: "", exitOnLockContention: true }, ports),
    /cannot exit on lock file contention: no lock file specified/,
  );
  await holdLockFile({ lockFile: "", exitOnLockContention: false }, ports);
});

test("lock file: another process that opens it ends the agent in order", async () => {
  await using scope = new TaskScope();
  const ending = new Ending();
  const lockFile = join(directory, "lock");
  await holdLockFile(
    { lockFile, exitOnLockContention: true },
    { clock: systemClock, log: silentLogger, scope, ending },
  );
  assert.equal(ending.signal.aborted, false);
  spawnSync(process.execPath, ["-e", `require("fs").openSync(${JSON.stringify(lockFile)}, "r")`]);
  assert.equal(await ending.reached(), "another process wants the lock file");
});

test("lock file: without exit on contention others may open it", async () => {
  await using scope = new TaskScope();
  const lockFile = join(directory, "shared-lock");
  const ports = { clock: systemClock, log: silentLogger, scope, ending: new Ending() };
  await holdLockFile({ lockFile, exitOnLockContention: false }, ports);
  assert.equal(scope.size, 0);
});
