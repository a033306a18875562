import assert from "node:assert/strict";
import { getPriority, setPriority } from "node:os";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import { tuneOwnProcess } from "./process-limits.ts";

test("limits that cannot be had are said once and do not stop the start", async () => {
  const clock = new FakeClock();
  const said: string[] = [];
  const log = {
    ...silentLogger,
    info: (message: string) => said.push(message),
    error: (message: string) => said.push(message),
  };
  await using scope = new TaskScope();
  // Scores end at 1000 and no kernel allows so many open files: both are refused everywhere, also for root.
  await tuneOwnProcess({ oomScoreAdj: 5_000, maxOpenFiles: 2 ** 40, kubeletCgroups: "" }, { clock, log, scope });
  assert.deepEqual(said, ["Failed to set rlimit on max file handles"]);
  const nextTimer = async (): Promise<void> => {
    while (clock.pendingTimers === 0) await systemClock.sleep(1, scope.signal);
  };
  await nextTimer();
  await clock.advance(100);
  await nextTimer();
  assert.deepEqual(said.slice(1), ["Failed to apply the OOM score"]);
  for (let turn = 0; turn < 2; turn++) {
    await clock.advance(5 * 60_000);
    await nextTimer();
    await clock.advance(100);
    await nextTimer();
  }
  assert.equal(said.length, 2);
  await scope.stop();
  assert.equal(clock.pendingTimers, 0);
});

const mayGoFirst = process.getuid?.() === 0;

for (const [given, wanted] of [
  [0, -10],
  [5, 5],
] as const) {
  const skip = mayGoFirst ? false : "only root may go before others";
  test(`a process of priority ${given} goes on with ${wanted}`, { skip }, async () => {
    await using scope = new TaskScope();
    const before = getPriority();
    try {
      setPriority(given);
      await tuneOwnProcess(
        { oomScoreAdj: 0, maxOpenFiles: 1_024, kubeletCgroups: "" },
        { clock: new FakeClock(), log: silentLogger, scope },
      );
      assert.equal(getPriority(), wanted);
    } finally {
      setPriority(before);
    }
  });
}
