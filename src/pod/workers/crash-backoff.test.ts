import assert from "node:assert/strict";
import { test } from "node:test";
import { exited, testContainer } from "../../../test/support/pods.ts";
import type { Container } from "../../ground/model/index.ts";
import { CrashBackoff } from "./crash-backoff.ts";
import { crashBackoffOf } from "./crash-backoff-settings.ts";

const main = testContainer("main");
const usual = { initialMs: 10_000, maxMs: 300_000 };
const ended = (finishedAt: number, id = "a") => exited("main", 1, { finishedAt, id: id as never });

/** Lets the container end and start again in turn: `ranMs` is how long each life lasts; returns what each end waits for. */
function waits(settings: typeof usual, ranMs: readonly number[], containers: readonly Container[] = []): number[] {
  const backoff = new CrashBackoff(settings, undefined);
  let now = 0;
  return ranMs.map((ms, index) => {
    const container = containers[index] ?? main;
    now += ms;
    const end = ended(now);
    const wait = backoff.waitFor(container, end, now);
    assert.equal(wait?.until, wait && now + wait.delayMs);
    now = wait?.until ?? now;
    assert.equal(backoff.waitFor(container, end, now), undefined, "it may start when its time has come");
    backoff.advance(container, end, now);
    return wait?.delayMs ?? 0;
  });
}

const larger = { ...main, resources: { limits: { cpu: "2" } } };
for (const [name, settings, ranMs, wanted, containers] of [
  [
    "none the first time, then 10 s doubling to five minutes",
    usual,
    [1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000],
    [0, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000],
  ],
  ["a shorter longest wait is kept to", { ...usual, maxMs: 15_000 }, [1, 1, 1, 1], [0, 10_000, 15_000, 15_000]],
  ["a long life counts like a short one", usual, [1, 590_000, 1, 1], [0, 10_000, 20_000, 40_000]],
  ["a life of twice the longest wait is forgotten after", usual, [1, 1, 600_001, 1], [0, 10_000, 0, 10_000]],
  ["a life of just less is not", usual, [1, 1, 600_000, 1], [0, 10_000, 20_000, 40_000]],
  ["another image starts over", usual, [1, 1, 1, 1], [0, 10_000, 0, 10_000], [main, main, { ...main, image: "b:2" }]],
  ["other resources start over", usual, [1, 1, 1, 1], [0, 10_000, 0, 20_000], [main, main, larger, main]],
] as const satisfies readonly (readonly [
  string,
  typeof usual,
  readonly number[],
  readonly number[],
  (readonly Container[])?,
])[]) {
  test(name, () => {
    const kinds: readonly Container[] = containers ?? [];
    // The last kind given stays.
    const each = ranMs.map((_, index) => kinds[Math.min(index, kinds.length - 1)] ?? main);
    assert.deepEqual(waits(settings, ranMs, each), wanted);
  });
}

test("one that never ended waits for nothing", () => {
  const backoff = new CrashBackoff(usual, undefined);
  backoff.advance(main, ended(0), 0);
  assert.equal(backoff.waitFor(main, undefined, 1), undefined);
});

test("what was saved goes on where it was", () => {
  const before = new CrashBackoff(usual, undefined);
  before.advance(main, ended(0), 0);
  before.advance(main, ended(10_000), 10_000);
  const after = new CrashBackoff(usual, before.snapshot());
  assert.deepEqual(after.waitFor(main, ended(11_000), 12_000), { delayMs: 20_000, until: 31_000 });
});

test("a start that was allowed and did not come about is tried again without another wait, and no longer one later", () => {
  const before = new CrashBackoff(usual, undefined);
  before.advance(main, ended(0), 0);
  before.advance(main, ended(1_000), 11_000);
  for (const backoff of [before, new CrashBackoff(usual, before.snapshot())]) {
    assert.equal(backoff.waitFor(main, ended(1_000), 12_000), undefined);
    backoff.advance(main, ended(1_000), 12_000);
    assert.equal(backoff.waitFor(main, ended(13_000), 14_000)?.delayMs, 20_000);
    backoff.started(main);
    assert.equal(backoff.waitFor(main, ended(1_000), 14_000)?.until, 21_000, "whose record is lost waits all the same");
  }
});

test("one that ended before the clock was set back waits once more, and no longer", () => {
  const backoff = new CrashBackoff(usual, undefined);
  const hours = 5 * 3_600_000;
  backoff.advance(main, ended(hours), hours);
  assert.deepEqual(backoff.waitFor(main, ended(hours), 1_000), { delayMs: 10_000, until: 11_000 });
  assert.deepEqual(backoff.waitFor(main, ended(hours), 10_999), { delayMs: 10_000, until: 11_000 });
  assert.equal(backoff.waitFor(main, ended(hours), 11_000), undefined);
  assert.deepEqual(backoff.waitFor(main, ended(hours, "b"), 20_000)?.until, 30_000, "the next instance waits too");
});

for (const [reduced, maxContainerRestartPeriodMs, initialMs, maxMs] of [
  [false, undefined, 10_000, 300_000],
  [true, undefined, 1_000, 60_000],
  [false, 30_000, 10_000, 30_000],
  [false, 2_000, 2_000, 2_000],
  [true, 300_000, 1_000, 300_000],
] as const) {
  const asked = maxContainerRestartPeriodMs === undefined ? "nothing set" : `at most ${maxContainerRestartPeriodMs} ms`;
  test(`settings: ${reduced ? "reduced decay" : "usual decay"}, ${asked}: ${initialMs} to ${maxMs} ms`, () => {
    const config = {
      gates: { enabled: (gate: string) => reduced && gate === "ReduceDefaultCrashLoopBackOffDecay" },
      kubelet: { crashLoopBackOff: { maxContainerRestartPeriodMs } },
    };
    assert.deepEqual(crashBackoffOf(config as never), { initialMs, maxMs });
  });
}

test("sizes that a container had long ago are not kept for ever", () => {
  const backoff = new CrashBackoff(usual, undefined);
  const steady = testContainer("steady");
  for (let size = 1; size <= 1_000; size++) {
    const sized = { ...main, resources: { limits: { cpu: String(size) } } };
    const now = size * 60_000;
    backoff.advance(sized, ended(now, `a${size}`), now);
    backoff.started(sized);
    if (size >= 995) backoff.advance(steady, exited("steady", 1, { finishedAt: now, id: `s${size}` as never }), now);
  }
  const kept = Object.keys(backoff.snapshot()).length;
  assert.ok(kept < 20, `${kept} are kept`);
  assert.equal(backoff.waitFor(steady, exited("steady", 1, { finishedAt: 60_000_000 }), 60_000_000)?.delayMs, 300_000);
});
