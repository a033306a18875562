import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { sizedPod } from "../../../../test/support/pinned-pods.ts";
import { until } from "../../../../test/support/until.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import type { ContainerId } from "../../../ground/model/index.ts";
import { CpusetKeeper, type KeptContainer } from "./cpuset-keeper.ts";

const container = (name: string): KeptContainer => ({ id: `id-${name}` as ContainerId, name, pod: sizedPod("p", {}) });

let scope: TaskScope;
let clock: FakeClock;
let running: KeptContainer[];
let shared: string;
/** Where the kernel has them. */
let kernel: Map<string, string>;
let calls: string[];
let failures: Map<string, number>;
let keeper: CpusetKeeper;

beforeEach(() => {
  scope = new TaskScope();
  clock = new FakeClock();
  running = [container("a"), container("b")];
  shared = "0-3";
  kernel = new Map();
  calls = [];
  failures = new Map();
  keeper = new CpusetKeeper(scope, {
    clock,
    log: silentLogger,
    periodMs: 10_000,
    pinsCpus: true,
    running: () => running,
    wantedFor: () => shared,
    tellRuntime: async (id, cpus) => {
      calls.push(`${id} ${cpus}`);
      const left = failures.get(id) ?? 0;
      failures.set(id, left - 1);
      if (left > 0) throw new Error("the runtime is busy");
      kernel.set(id, cpus);
    },
    inForce: async ({ id }) => kernel.get(id),
  });
});
afterEach(() => scope.stop());

/** Until nothing is under way any more. */
const settled = (count: number): Promise<void> => until(`${count} calls`, () => calls.length >= count);

test("after a start: who is where he should be is left alone, the others are told once", async () => {
  kernel.set("id-a", "0-3");
  await keeper.check();
  await settled(1);
  await keeper.check();
  assert.deepEqual(calls, ["id-b 0-3"]);
});

test("the pool changes: everybody is moved at once, and once", async () => {
  await keeper.check();
  await settled(2);
  shared = "2-3";
  keeper.wake();
  keeper.wake();
  await settled(4);
  assert.deepEqual(calls.slice(2).sort(), ["id-a 2-3", "id-b 2-3"]);
});

test("what others change is put right at the next look", async () => {
  scope.spawn("keeper", (signal) => keeper.run(signal));
  await settled(2);
  kernel.set("id-a", "0");
  await clock.advance(10_000);
  await settled(3);
  assert.deepEqual(calls.slice(2), ["id-a 0-3"]);
});

test("one that can't be moved is tried again, and holds up nobody", async () => {
  failures.set("id-a", 1);
  await keeper.check();
  await settled(2);
  assert.equal(kernel.get("id-b"), "0-3");
  await keeper.check();
  await settled(3);
  assert.equal(kernel.get("id-a"), "0-3");
});

test("a container that is made while the pool changes is moved too, before anybody has seen it run", async () => {
  await keeper.check();
  await settled(2);
  keeper.made(container("new"), "0-3");
  shared = "1-3";
  keeper.wake();
  await settled(5);
  assert.equal(kernel.get("id-new"), "1-3");
  // Made for a pool that had changed in the meantime.
  keeper.made(container("newer"), "0-3");
  await settled(6);
  assert.equal(kernel.get("id-newer"), "1-3");
});

test("containers that are gone are forgotten, one that has ended is not told", async () => {
  await keeper.check();
  await settled(2);
  running = [container("a")];
  shared = "3";
  keeper.wake();
  await settled(3);
  assert.deepEqual(calls.slice(2), ["id-a 3"]);
});

for (const periodMs of [-1_000, 0, 0.000_001]) {
  test(`a period of ${periodMs} ms keeps no processor busy`, async () => {
    let looks = 0;
    const hasty = new CpusetKeeper(scope, {
      clock,
      log: silentLogger,
      periodMs,
      pinsCpus: true,
      running: () => {
        looks++;
        return [];
      },
      wantedFor: () => shared,
      tellRuntime: async () => {},
      inForce: async () => undefined,
    });
    scope.spawn("hasty", (signal) => hasty.run(signal));
    for (let second = 0; second < 10; second++) await clock.advance(1_000);
    assert.ok(looks >= 5 && looks <= 12, `${looks} looks in ten seconds`);
  });
}
