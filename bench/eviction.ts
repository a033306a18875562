// How soon a pod that eats memory is dead after too little was left, and whether the kernel had to kill. Args: rounds, MiB/s.
import { ApiCluster } from "../test/support/api-cluster.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { type EatingRound, letEat, smallPodMemory, untilCondition } from "../test/support/memory-eater.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 10);
const megabytesPerSecond = Number(process.argv[3] ?? 100);

await using containerd = await startContainerd();
await using cluster = await ApiCluster.start(containerd, smallPodMemory);
const results: EatingRound[] = [];
for (let round = 0; round < rounds; round++) {
  const name = `eater-${round}`;
  await untilCondition(cluster, "MemoryPressure", "False");
  results.push(await letEat(cluster, containerd, name, megabytesPerSecond));
  await cluster.delete(name, 0);
  await cluster.untilGone(name);
}
const times = results.map(({ crossingToDeadMs }) => crossingToDeadMs);
console.log(
  JSON.stringify({
    bench: "eviction",
    rounds,
    megabytesPerSecond,
    evicted: results.filter(({ pod }) => pod.status?.reason === "Evicted").length,
    oomKills: results.reduce((sum, each) => sum + each.oomKills, 0),
    crossingToDeadP50Ms: rounded(quantile(times, 0.5)),
    crossingToDeadMaxMs: rounded(Math.max(...times)),
    leastLeftMegabytes: rounded(Math.min(...results.map(({ leastLeftMegabytes }) => leastLeftMegabytes))),
  }),
);
