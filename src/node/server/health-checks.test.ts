import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { eventually } from "../../../test/support/agent.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { TaskScope } from "../../ground/base/index.ts";
import { DiskSamples } from "./disk-samples.ts";
import { HealthRegistry } from "./health.ts";
import { watchApi, watchDisk, watchEventLoop } from "./health-checks.ts";
import { describeHealth } from "./healthz.ts";

const lines = (health: HealthRegistry): readonly string[] => describeHealth(health.read(), "reasons").split("\n");

test("event loop: the age of the last turn and how late it was; a loop that stands still fails", async () => {
  const clock = new FakeClock();
  const health = new HealthRegistry(clock);
  await using scope = new TaskScope();
  watchEventLoop({ health, clock }, scope);
  await clock.advance(13_000);
  assert.deepEqual(lines(health).slice(0, 2), [
    "[+]syncloop ok (proven 3s ago)",
    "[+]event-loop ok (proven 3s ago; timers at most 0 ms late in the last 10 s)",
  ]);
  await scope.stop();
  await clock.advance(5 * 60_000);
  assert.match(lines(health)[0] ?? "", /^\[-\]syncloop failed .*: sync Loop took longer than expected$/);
});

test("event loop: late timers are told of for a minute", async () => {
  const fake = new FakeClock();
  let lateMs = 6_000;
  const clock = { ...bound(fake), sleep: (ms: number, signal: AbortSignal) => fake.sleep(ms + lateMs, signal) };
  const health = new HealthRegistry(clock);
  await using scope = new TaskScope();
  watchEventLoop({ health, clock }, scope);
  await fake.advance(16_000);
  assert.match(lines(health)[1] ?? "", /^\[~\]event-loop waiting .*timers came up to 6000 ms late/);
  lateMs = 0;
  await fake.advance(80_000);
  assert.match(lines(health)[1] ?? "", /^\[\+\]event-loop ok .*at most 0 ms late in the last 60 s/);
});

function bound(clock: FakeClock) {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (ms: number, action: () => void) => clock.after(ms, action),
  };
}

test("disk: free space, and what is wrong when it is gone", async () => {
  const clock = new FakeClock();
  const health = new HealthRegistry(clock);
  const root = await mkdtemp(join(tmpdir(), "nodelet-disk-"));
  await using scope = new TaskScope();
  watchDisk(root, { health, clock, samples: new DiskSamples() }, scope);
  await eventually(async () => /GiB free/.test(lines(health)[0] ?? ""), "the first proof", 20_000);
  await clock.advance(20_000);
  assert.match(lines(health)[0] ?? "", /^\[\+\]disk ok \(proven 20s ago; [\d.]+ GiB free\)$/);
  await rm(root, { recursive: true });
  await clock.advance(40_000);
  await eventually(async () => /waiting/.test(lines(health)[0] ?? ""), "the problem is seen", 20_000);
  assert.match(lines(health)[0] ?? "", /^\[~\]disk waiting .*ENOENT/);
});

test("disk: silence is told", async () => {
  const clock = new FakeClock();
  const health = new HealthRegistry(clock);
  await using scope = new TaskScope();
  watchDisk("/", { health, clock, samples: new DiskSamples() }, scope);
  await scope.stop();
  await clock.advance(200_000);
  assert.match(lines(health)[0] ?? "", /^\[~\]disk waiting .*it does not answer$/);
});

test("API: the watch and the lease, each with the age of its proof and why it fails", async () => {
  const clock = new FakeClock();
  const health = new HealthRegistry(clock);
  const pods: { heardAt: number | undefined; problem: string | undefined; hasSynced: boolean } = {
    heardAt: undefined,
    problem: undefined,
    hasSynced: false,
  };
  let renewal: { at: number | undefined; problem: string | undefined } | undefined;
  watchApi({ health, clock, pods, lease: () => renewal, leaseSeconds: 40 });
  assert.deepEqual(lines(health).slice(0, 2), [
    "[~]api-watch waiting for 0s: the API server's pods: the first list has not come yet",
    "[~]lease waiting for 0s: the node's lease was not renewed yet",
  ]);
  Object.assign(pods, { heardAt: clock.monotonic(), hasSynced: true });
  renewal = { at: clock.monotonic(), problem: undefined };
  await clock.advance(7_000);
  assert.deepEqual(lines(health).slice(0, 2), ["[+]api-watch ok (proven 7s ago)", "[+]lease ok (proven 7s ago)"]);
  pods.problem = "connection refused";
  renewal = { ...renewal, problem: "timeout" };
  await clock.advance(40_000);
  assert.deepEqual(lines(health).slice(0, 2), [
    "[~]api-watch waiting for 0s: the API server's pods: connection refused",
    "[~]lease waiting for 0s: the node's lease was last renewed 47s ago: timeout",
  ]);
});
