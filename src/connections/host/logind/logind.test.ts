import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FakeLogind } from "../../../../test/support/fake-logind.ts";
import { until } from "../../../../test/support/until.ts";
import { never, systemClock } from "../../../ground/base/index.ts";
import type { Logind } from "./logind.ts";

async function opened(fake: FakeLogind): Promise<Logind & Disposable> {
  const logind = await fake.access.open(systemClock, never);
  return Object.assign(logind, { [Symbol.dispose]: () => logind.close() });
}

test("a lock is held until it is given back, whatever becomes of the connection", async () => {
  await using fake = await FakeLogind.start();
  const logind = await opened(fake);
  const lock = (await logind.inhibit()) ?? assert.fail("no lock");
  assert.equal(fake.held, 1);
  const lost = new Promise((resolve) => logind.onEnd(resolve));
  fake.dropConnections();
  await lost;
  assert.equal(fake.held, 1);
  lock[Symbol.dispose]();
  lock[Symbol.dispose]();
  assert.equal(fake.held, 0);
});

test("a shutdown that is under way already can't be held up", async () => {
  await using fake = await FakeLogind.start();
  using logind = await opened(fake);
  fake.isPreparing = true;
  assert.equal(await logind.inhibit(), undefined);
  assert.equal(await logind.isPreparing(), true);
  assert.equal(fake.held, 0);
});

test("the longest delay is read, and raised by a file that the kubelet would write", async () => {
  await using fake = await FakeLogind.start();
  using logind = await opened(fake);
  assert.equal(await logind.maxDelayMs(), 5_000);
  await logind.raiseMaxDelay(40);
  assert.equal(await logind.maxDelayMs(), 40_000);
  const file = join(fake.dropIns, "99-kubelet.conf");
  assert.equal(readFileSync(file, "utf8"), "# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=40\n");
  assert.equal(statSync(file).mode & 0o777, 0o644);
});

test("only logind is believed when it says that the machine turns off", async () => {
  await using fake = await FakeLogind.start();
  using logind = await opened(fake);
  const told: boolean[] = [];
  logind.onPrepareForShutdown((begins) => told.push(begins));
  fake.prepare(true, ":1.666");
  fake.prepare(true);
  fake.prepare(false);
  await until("both are heard", () => told.length >= 2);
  assert.deepEqual(told, [true, false]);
});

test("no bus, and a bus without logind", async () => {
  const nowhere = (await import("./find.ts")).logindAccess("unix:path=/nowhere/bus");
  assert.equal(await nowhere.absence(), "there is no system bus at /nowhere/bus");
  await assert.rejects(nowhere.open(systemClock, never), /Cannot connect to D-Bus at \/nowhere\/bus/);
  await using fake = await FakeLogind.start();
  assert.equal(await fake.access.absence(), undefined);
});
