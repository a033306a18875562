// Removes what a test process left behind: `reap.ts 3` the machine of slot 3, without a number all that are abandoned.
// Says how many it removed.
import { systemClock } from "../../src/ground/base/index.ts";
import { slotAt, sweepSlot, sweepSlots } from "./slots.ts";

const tries = 5;
const pauseMs = 2_000;
const number = process.argv[2];
const swept = number === undefined ? await sweepSlots() : await sweepOne(Number(number));
process.stdout.write(`${swept}\n`);

/** What is busy at the first try, on a machine that has hardly time for us, is free at a later one. */
async function sweepOne(slot: number): Promise<number> {
  for (let round = 1; ; round++) {
    try {
      return Number(await sweepSlot(slotAt(slot)));
    } catch (error) {
      if (round === tries) throw error;
      await systemClock.sleep(pauseMs, new AbortController().signal);
    }
  }
}
