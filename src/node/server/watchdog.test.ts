import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { DatagramReceiver } from "../../../test/support/datagram-receiver.ts";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { ServiceManager } from "../../connections/host/index.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { HealthRegistry } from "./health.ts";
import { runWatchdog, watchdogSetting } from "./watchdog.ts";

const directory = mkdtempSync(join(tmpdir(), "nodelet-watchdog-"));
after(() => rmSync(directory, { recursive: true, force: true }));

for (const { usec, pid, expected } of [
  { usec: undefined, pid: undefined, expected: "not asked for" },
  { usec: "", pid: "7", expected: "not asked for" },
  { usec: "30000000", pid: undefined, expected: { timeoutMs: 30_000 } },
  { usec: "30000000", pid: "", expected: { timeoutMs: 30_000 } },
  { usec: "30000000", pid: "7", expected: { timeoutMs: 30_000 } },
  { usec: "30000000", pid: "8", expected: "asked of another process" },
  { usec: "1000001", pid: undefined, expected: { timeoutMs: 1_000.001 } },
  { usec: "1000000", pid: "8", expected: "asked of another process" },
] as const) {
  test(`WATCHDOG_USEC=${usec} WATCHDOG_PID=${pid}`, () => {
    const environment = { notifySocket: undefined, watchdogUsec: usec, watchdogPid: pid };
    assert.deepEqual(watchdogSetting(environment, 7), expected);
  });
}

for (const { usec, pid, problem } of [
  { usec: "abc", pid: undefined, problem: /^create health checker: WATCHDOG_USEC is "abc", must be a whole number$/ },
  { usec: "1.5", pid: undefined, problem: /WATCHDOG_USEC is "1.5"/ },
  { usec: "0", pid: undefined, problem: /WATCHDOG_USEC is "0", must be a positive number/ },
  { usec: "-5", pid: undefined, problem: /must be a positive number/ },
  { usec: "1000000", pid: undefined, problem: /^create health checker: .*1000 ms .* too small, must be more than 1 s/ },
  { usec: "30000000", pid: "x", problem: /WATCHDOG_PID is "x"/ },
]) {
  test(`WATCHDOG_USEC=${usec} WATCHDOG_PID=${pid} is refused`, () => {
    const environment = { notifySocket: undefined, watchdogUsec: usec, watchdogPid: pid };
    assert.throws(() => watchdogSetting(environment, 7), { message: problem });
  });
}

async function start(scope: TaskScope, socket: string) {
  const clock = new FakeClock();
  const health = new HealthRegistry(clock);
  const errors: string[] = [];
  const log = { ...silentLogger, error: (message: string) => errors.push(message) };
  const service = new ServiceManager(socket, silentLogger);
  const ports = { health, service, clock, log, random: () => 0.5 };
  scope.spawn("watchdog", (signal) => runWatchdog(10_000, ports, signal));
  // The first sign needs the native library, which loads in real time.
  while (clock.pendingTimers === 0) await settle(1);
  return { clock, health, errors };
}

test("signs of life at half the timeout, from the start", async () => {
  const socket = join(directory, "steady.sock");
  await using receiver = await DatagramReceiver.listen(socket);
  await using scope = new TaskScope();
  const { clock } = await start(scope, socket);
  assert.deepEqual(receiver.received(), ["WATCHDOG=1"]);
  await clock.advance(4_999);
  assert.equal(receiver.received().length, 1);
  await clock.advance(1);
  assert.equal(receiver.received().length, 2);
  await clock.advance(45_000);
  assert.equal(receiver.received().length, 11);
  await scope.stop();
  assert.equal(clock.pendingTimers, 0);
});

test("no sign while a vital check fails; again once it passes; a runtime that is away does not matter", async () => {
  const socket = join(directory, "sick.sock");
  await using receiver = await DatagramReceiver.listen(socket);
  await using scope = new TaskScope();
  const { clock, health, errors } = await start(scope, socket);
  health.report("runtime", { state: "failed", reason: "speaks another version" });
  health.expect("syncloop", 300_000, "sync Loop took longer than expected");
  health.report("syncloop", { state: "ok" });
  // The kernel queues ten datagrams at most, so they are read in between.
  for (let turn = 0; turn < 10; turn++) {
    await clock.advance(30_000);
    receiver.received();
  }
  const healthy = receiver.received().length;
  assert.equal(healthy, 61);
  await clock.advance(20_000);
  assert.equal(receiver.received().length, healthy);
  assert.equal(errors.length, 4);
  health.report("syncloop", { state: "ok" });
  await clock.advance(5_000);
  assert.equal(receiver.received().length, healthy + 1);
});

test("a sign that cannot be sent is tried once more after 1 to 1.1 s, then the next turn comes", async () => {
  const socket = join(directory, "late.sock");
  await using scope = new TaskScope();
  const { clock, errors } = await start(scope, socket);
  await clock.advance(1_049);
  await using receiver = await DatagramReceiver.listen(socket);
  await clock.advance(1);
  assert.deepEqual(receiver.received(), ["WATCHDOG=1"]);
  assert.deepEqual(errors, []);
  await clock.advance(5_000 - 1_050);
  assert.equal(receiver.received().length, 2);
});

test("a sign that fails twice is an error, and the watchdog goes on", async () => {
  await using scope = new TaskScope();
  const { clock, errors } = await start(scope, join(directory, "nobody.sock"));
  await clock.advance(1_050);
  assert.deepEqual(errors, ["Failed to notify systemd watchdog"]);
  await clock.advance(5_000);
  assert.equal(errors.length, 2);
});

test("without a service manager nothing is told, and a deaf one does not disturb", async () => {
  const warnings: string[] = [];
  const log = { ...silentLogger, warn: (message: string) => warnings.push(message) };
  for (const none of [undefined, ""]) {
    const service = new ServiceManager(none, log);
    assert.equal(service.listens, false);
    await service.tell({ ready: true });
  }
  assert.deepEqual(warnings, []);
  await new ServiceManager(join(directory, "nobody.sock"), log).tell({ ready: true });
  assert.deepEqual(warnings, ["Could not notify the service manager"]);
});
