import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { FakeSystemd } from "../../../../test/support/fake-systemd.ts";
import { silentLogger, systemClock } from "../../../ground/base/index.ts";
import { SystemdManager, type SystemdSocket, type UnitProperty } from "./manager.ts";

const memory: UnitProperty = ["MemoryMax", { signature: "t", value: 67_108_864n }];

async function withSystemd(
  run: (parts: { systemd: FakeSystemd; manager: SystemdManager; clock: FakeClock }) => Promise<void>,
  others: readonly SystemdSocket[] = [],
): Promise<void> {
  await using systemd = await FakeSystemd.start();
  const clock = new FakeClock();
  const manager = new SystemdManager([...others, systemd.socket], { clock, log: silentLogger });
  try {
    await run({ systemd, manager, clock });
  } finally {
    manager.close();
  }
  assert.equal(clock.pendingTimers, 0);
}

/** Until it is so; what happens on sockets has no clock of ours. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise<void>((resolve) => setImmediate(resolve));
}

for (const endsJobsEarly of [false, true]) {
  test(`a unit's life${endsJobsEarly ? ", with ends of jobs told before their names" : ""}`, async () => {
    await withSystemd(async ({ systemd, manager }) => {
      systemd.endsJobsEarly = endsJobsEarly;
      assert.equal(await manager.version(), 252);
      assert.equal(await manager.startTransient("a.slice", [memory]), "made");
      assert.deepEqual([...(systemd.units.get("a.slice") ?? [])], [["MemoryMax", 67_108_864n]]);
      assert.equal(await manager.startTransient("a.slice", []), "existed");
      await manager.setProperties("a.slice", [["CPUWeight", { signature: "t", value: 20n }]]);
      assert.equal(systemd.units.get("a.slice")?.get("CPUWeight"), 20n);
      await manager.stop("a.slice");
      assert.equal(systemd.units.size, 0);
      await manager.stop("a.slice");
    });
  });
}

test("what can't be written to the bus fails alone, and at once", async () => {
  await withSystemd(async ({ systemd, manager, clock }) => {
    await manager.connect();
    const tooMuch: UnitProperty = ["MemoryMax", { signature: "t", value: 2n ** 64n }];
    await assert.rejects(manager.startTransient("a.slice", [tooMuch]), RangeError);
    assert.equal(clock.pendingTimers, 0);
    assert.equal(await manager.startTransient("b.slice", [memory]), "made");
    assert.deepEqual([...systemd.units.keys()], ["b.slice"]);
  });
});

test("what exists is started too, as being known is not being active", async () => {
  await withSystemd(async ({ systemd, manager }) => {
    systemd.units.set("a.slice", new Map());
    assert.equal(await manager.startTransient("a.slice", []), "existed");
    assert.deepEqual(systemd.calls.slice(-2), ["StartTransientUnit a.slice", "StartUnit a.slice"]);
  });
});

test("a job that fails is an error that says so, and leaves no failed unit", async () => {
  await withSystemd(async ({ systemd, manager }) => {
    systemd.results.set("a.slice", "dependency");
    await assert.rejects(
      manager.startTransient("a.slice", []),
      /could not start a\.slice: the job's result is "dependency"/,
    );
    assert.equal(systemd.calls.at(-1), "ResetFailedUnit a.slice");
  });
});

test("a refusal is that call's alone", async () => {
  await withSystemd(async ({ systemd, manager }) => {
    systemd.instead.set("StartTransientUnit", (connection, call) => {
      if (call.readBody()[0] === "bad.slice") connection.refuse(call, "org.freedesktop.DBus.Error.AccessDenied", "no");
      else connection.reply(call, "o", ["/job/1"]);
      systemd.signal({ member: "JobRemoved", signature: "uoss", body: [1, "/job/1", "good.slice", "done"] });
    });
    const [bad, good] = await Promise.allSettled(
      ["bad.slice", "good.slice"].map((unit) => manager.startTransient(unit, [])),
    );
    assert.equal(bad?.status === "rejected" && bad.reason.errorName, "org.freedesktop.DBus.Error.AccessDenied");
    assert.equal(good?.status, "fulfilled");
  });
});

test("a call that is never answered ends in time, and the next one gets a new connection", async () => {
  await withSystemd(async ({ systemd, manager, clock }) => {
    systemd.instead.set("SetUnitProperties", () => {});
    await manager.connect();
    const hung = assert.rejects(manager.setProperties("a.slice", []), /SetUnitProperties was not answered within 30 s/);
    await until(() => systemd.calls.includes("SetUnitProperties a.slice"));
    await clock.advance(30_000);
    await hung;
    assert.equal(await manager.startTransient("b.slice", []), "made");
  });
});

test("a job that never ends ends in time, beside others that do", async () => {
  await withSystemd(async ({ systemd, manager, clock }) => {
    await manager.connect();
    systemd.instead.set("StopUnit", (connection, call) => connection.reply(call, "o", ["/job/never"]));
    const hung = assert.rejects(manager.stop("a.slice"), /Timed out waiting for systemd to stop a\.slice \(30 s\)/);
    await until(() => systemd.calls.includes("StopUnit a.slice"));
    for (let count = 0; count < 20; count++) assert.equal(await manager.startTransient(`${count}.slice`, []), "made");
    await clock.advance(30_000);
    await hung;
  });
});

test("a bus that goes away fails what waits for it, and is found again", async () => {
  await withSystemd(async ({ systemd, manager }) => {
    await manager.connect();
    systemd.instead.set("StopUnit", (connection, call) => {
      connection.reply(call, "o", ["/job/never"]);
      systemd.dropConnections();
    });
    await assert.rejects(manager.stop("a.slice"), { name: "BusLostError" });
    assert.equal(await manager.startTransient("b.slice", []), "made");
  });
});

test("signals of anybody else are nobody's: neither ends of jobs nor reloads", async () => {
  await withSystemd(async ({ systemd, manager, clock }) => {
    let reloads = 0;
    await manager.connect();
    manager.onReload(() => reloads++);
    const body = [1, "/job/1", "a.slice", "done"];
    systemd.instead.set("StopUnit", (connection, call) => {
      systemd.signal({ member: "JobRemoved", sender: ":1.666", signature: "uoss", body });
      connection.reply(call, "o", ["/job/1"]);
      systemd.signal({ member: "JobRemoved", sender: ":1.666", signature: "uoss", body });
      systemd.signal({ member: "Reloading", sender: ":1.666", signature: "b", body: [false] });
    });
    const stop = assert.rejects(manager.stop("a.slice"), /Timed out/);
    await until(() => systemd.calls.includes("StopUnit a.slice"));
    await manager.startTransient("b.slice", []);
    await clock.advance(30_000);
    await stop;
    assert.equal(reloads, 0);
    await systemd.reload();
    await until(() => reloads === 1);
  });
});

test("the second socket is used where the first has nobody behind it, or somebody who says nothing", async () => {
  const nobody: SystemdSocket = { kind: "bus", path: "/nonexistent/bus" };
  await withSystemd(async ({ manager }) => assert.equal(await manager.startTransient("a.slice", []), "made"), [nobody]);
  await using silent = await FakeSystemd.start();
  silent.instead.set("Hello", () => {});
  await withSystemd(
    async ({ manager, clock }) => {
      const started = manager.startTransient("a.slice", []);
      await until(() => silent.calls.includes("Hello"));
      await clock.advance(10_000);
      assert.equal(await started, "made");
    },
    [silent.socket],
  );
});

test("closing ends what is under way, at any moment of it", async () => {
  await using systemd = await FakeSystemd.start();
  for (const member of ["Hello", "Get", "StopUnit"]) {
    systemd.instead.clear();
    systemd.calls.length = 0;
    systemd.instead.set(member, () => {});
    const manager = new SystemdManager([systemd.socket], { clock: systemClock, log: silentLogger });
    const stop = assert.rejects(manager.stop("a.slice"), { name: "BusLostError" });
    await until(() => systemd.calls.some((call) => call.startsWith(member)));
    manager.close();
    await stop;
    await assert.rejects(manager.connect(), { name: "BusLostError" });
  }
});
