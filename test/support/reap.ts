// Removes what a test process left behind: `reap.ts 3` the machine of slot 3, without a number all that are abandoned.
// Says how many it removed.
import { slotAt, sweepSlot, sweepSlots } from "./slots.ts";

const number = process.argv[2];
const swept = number === undefined ? await sweepSlots() : Number(await sweepSlot(slotAt(Number(number))));
process.stdout.write(`${swept}\n`);
