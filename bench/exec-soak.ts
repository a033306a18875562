// Thousands of short execs, some given up at once: descriptors and memory of the agent on the way. Args: execs.
import { systemClock } from "../src/ground/base/index.ts";
import { ExecNode, timeExec } from "./lib/exec-node.ts";
import { holdOf, load, type ProcessHold } from "./lib/process-cost.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const execs = Number(process.argv[2] ?? 2_000);
const atOnce = 4;
const quitEvery = 10;
/** What is given up is let go of a while later. */
const settleMs = 20_000;
const never = new AbortController().signal;

await using node = await ExecNode.start();
const times: number[] = [];
let done = 0;
const runner = async (until: number): Promise<void> => {
  while (done < until) {
    done++;
    if (done % quitEvery === 0) (await node.throughAgent(["sleep", "1"])).connection[Symbol.dispose]();
    else times.push(await timeExec(node.throughAgent(["true"])));
  }
};
const run = async (until: number): Promise<ProcessHold> => {
  await Promise.all(Array.from({ length: atOnce }, () => runner(until)));
  await systemClock.sleep(settleMs, never);
  return holdOf(node.agent.pid);
};
const holds: ProcessHold[] = [];
for (const share of [0.1, 0.5, 1]) holds.push(await run(Math.round(execs * share)));
console.log(
  JSON.stringify({
    bench: "exec-soak",
    execs,
    givenUp: Math.floor(execs / quitEvery),
    atOnce,
    p50Ms: rounded(quantile(times, 0.5)),
    p99Ms: rounded(quantile(times, 0.99)),
    // After a tenth, half, and all of them.
    files: holds.map(({ files }) => files),
    rssMb: holds.map(({ rssMb }) => rssMb),
    load: load(),
  }),
);
