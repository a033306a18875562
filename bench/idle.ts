// What an idle agent with 50 pods costs in a minute: calls of the (simulated) runtime, CPU, memory. Args: pods, seconds.
import { IdleAgent } from "./lib/idle-agent.ts";
import { rounded } from "./lib/statistics.ts";

const pods = Number(process.argv[2] ?? 50);
const seconds = Number(process.argv[3] ?? 60);

await using agent = await IdleAgent.start(pods);
const { calls, cpuSeconds, rssMb } = await agent.measure(seconds);
console.log(
  JSON.stringify({
    bench: "idle",
    pods,
    seconds,
    callsPerMinute: rounded((calls * 60) / seconds),
    callsBudget: 10,
    cpuPercent: rounded((cpuSeconds / seconds) * 100, 2),
    rssMb: rounded(rssMb),
  }),
);
