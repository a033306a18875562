// 500 short execs and 200 MB of output through the agent, beside the runtime's bare stream; in turns, as ratios.
import { ExecNode, timeExec, timeOutput } from "./lib/exec-node.ts";
import { holdOf, load } from "./lib/process-cost.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 500);
const megabytes = 200;
const transfers = 9;

const loadBefore = load();
await using node = await ExecNode.start();
const short = ["true"];
const long = ["dd", "if=/dev/zero", "bs=1M", `count=${megabytes}`];
// The first ones warm both sides and do not count.
for (let round = 0; round < 10; round++) {
  await timeExec(node.throughAgent(short));
  await timeExec(node.bare(short));
}
const first = holdOf(node.agent.pid);
const times: number[] = [];
const bareTimes: number[] = [];
for (let round = 0; round < rounds; round++) {
  times.push(await timeExec(node.throughAgent(short)));
  bareTimes.push(await timeExec(node.bare(short)));
}
const transferTimes: number[] = [];
const bareTransferTimes: number[] = [];
for (let round = 0; round < transfers; round++) {
  transferTimes.push(await timeOutput(node.throughAgent(long), megabytes * 1_000_000));
  bareTransferTimes.push(await timeOutput(node.bare(long), megabytes * 1_000_000));
}
const last = holdOf(node.agent.pid);
const total = (samples: readonly number[]): number => samples.reduce((sum, sample) => sum + sample, 0);
const [p50, bareP50] = [quantile(times, 0.5), quantile(bareTimes, 0.5)];
const [transfer, bareTransfer] = [quantile(transferTimes, 0.5), quantile(bareTransferTimes, 0.5)];
console.log(
  JSON.stringify({
    bench: "exec",
    execs: rounds,
    p50Ms: rounded(p50),
    bareP50Ms: rounded(bareP50),
    p50Ratio: rounded(p50 / bareP50, 2),
    execsPerSecond: rounded((rounds * 1000) / total(times)),
    bareExecsPerSecond: rounded((rounds * 1000) / total(bareTimes)),
    execsRatio: rounded(total(times) / total(bareTimes), 2),
    mbPerSecond: rounded((megabytes * 1000) / transfer),
    bareMbPerSecond: rounded((megabytes * 1000) / bareTransfer),
    transferRatio: rounded(transfer / bareTransfer, 2),
    rssMb: [first.rssMb, last.rssMb],
    files: [first.files, last.files],
    load: loadBefore,
  }),
);
