// What eviction costs an idle agent: two side by side, one with thresholds, one without. Args: pods, seconds.
import { IdleAgent } from "./lib/idle-agent.ts";
import { rounded } from "./lib/statistics.ts";

const pods = Number(process.argv[2] ?? 100);
const seconds = Number(process.argv[3] ?? 120);
const signals = [
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
];
const off = { evictionHard: Object.fromEntries(signals.map((name) => [name, "0%"])) };

// At the same time, so that whatever else the machine does slows down both.
const [withEviction, without] = await Promise.all([IdleAgent.start(pods), IdleAgent.start(pods, off)]);
await using _with = withEviction;
await using _without = without;
const [cost, before] = await Promise.all([withEviction.measure(seconds), without.measure(seconds)]);
const percent = (cpuSeconds: number): number => rounded((cpuSeconds / seconds) * 100, 2);
console.log(
  JSON.stringify({
    bench: "idle-eviction",
    pods,
    seconds,
    cpuPercent: percent(cost.cpuSeconds),
    cpuPercentWithout: percent(before.cpuSeconds),
    ratio: rounded(cost.cpuSeconds / before.cpuSeconds, 2),
    ratioBudget: 1.1,
    callsPerMinute: rounded((cost.calls * 60) / seconds),
    callsPerMinuteWithout: rounded((before.calls * 60) / seconds),
    rssMb: rounded(cost.rssMb),
    rssMbWithout: rounded(before.rssMb),
  }),
);
