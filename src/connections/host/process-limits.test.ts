import assert from "node:assert/strict";
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
  await tuneOwnProcess({ oomScoreAdj: 5_000, maxOpenFiles: 2 ** 40 }, { clock, log, scope });
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
