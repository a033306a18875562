import assert from "node:assert/strict";
import { test } from "node:test";
import { SandboxPace } from "./sandbox-pace.ts";

/** What may happen to the sandboxes of a pod: each is begun as soon as it may be, then made or not, and lost later. */
type Event = { readonly made: boolean; readonly lostAfterMs: number } | "another pod";

const lost = (lostAfterMs: number): Event => ({ made: true, lostAfterMs });
const failed: Event = { made: false, lostAfterMs: 0 };

for (const [name, events, wanted] of [
  ["the first waits for nothing", [lost(0)], [0]],
  [
    "those that never serve come ever more slowly, half a minute apart at most",
    [lost(0), lost(0), lost(0), lost(0), lost(0), lost(0), lost(0), lost(0)],
    [0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000],
  ],
  ["one lost later than its wait is replaced at once", [lost(0), lost(5_000), lost(0)], [0, 1_000, 0]],
  ["that one is still of the row", [lost(0), lost(5_000), lost(0), lost(0)], [0, 1_000, 0, 4_000]],
  [
    "one that has served ends the row",
    [lost(0), lost(0), lost(120_001), lost(0), lost(0)],
    [0, 1_000, 2_000, 0, 1_000],
  ],
  [
    "one that could not be made does not lengthen the row",
    [failed, failed, lost(0), lost(0)],
    [0, 1_000, 1_000, 1_000],
  ],
  ["another pod starts over", [lost(0), lost(0), "another pod", lost(0), lost(0)], [0, 1_000, 0, 1_000]],
] as const satisfies readonly (readonly [string, readonly Event[], readonly number[]])[]) {
  test(name, () => {
    const pace = new SandboxPace();
    const waits: number[] = [];
    let now = 1_000_000;
    for (const event of events as readonly Event[]) {
      if (event === "another pod") {
        pace.startOver();
        continue;
      }
      const waitMs = pace.waitMs(now);
      waits.push(waitMs);
      now += waitMs;
      pace.begin(now);
      if (event.made) pace.made();
      now += event.lostAfterMs;
    }
    assert.deepEqual(waits, wanted);
  });
}
