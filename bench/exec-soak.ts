// Thousands of short execs, some given up at once: descriptors and memory of the agent, first and last. Args: execs.
import { systemClock } from "../src/base/index.ts";
import { ExecNode, timeExec } from "./lib/exec-node.ts";
import { holdOf, load, type ProcessHold } from "./lib/process-cost.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const execs = Number(process.argv[2] ?? 2_000);
const atOnce = 4;
const quitEvery = 10;
/** What is given up is let go of a while later. */
const settleMs = 45_000;
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
const first = await run(Math.min(200, execs));
const last = await run(execs);
console.log(
  JSON.stringify({
    bench: "exec-soak",
    execs,
    givenUp: Math.floor(execs / quitEvery),
    atOnce,
    p50Ms: rounded(quantile(times, 0.5)),
    p99Ms: rounded(quantile(times, 0.99)),
    files: [first.files, last.files],
    rssMb: [first.rssMb, last.rssMb],
    load: load(),
  }),
);
