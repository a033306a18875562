// Seeded changes of the configuration with faults on a real agent (invalid, harmful, kill -9, torn writes): where it ends, and whether containers notice. Args: changes, seed.

import { systemClock } from "../src/ground/base/index.ts";
import { ConfigProof } from "./lib/config-proof.ts";
import { load } from "./lib/process-cost.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const changes = Number(process.argv[2] ?? 100);
const seed = Number(process.argv[3] ?? 1);

await using proof = await ConfigProof.start(seed);
// Each change is looked at when it is over: one that ends wrong, or a container that noticed, ends the bench.
const counts = new Map<string, number>();
const times: number[] = [];
for (let change = 0; change < changes; change++) {
  const began = systemClock.monotonic();
  const { character, fault } = await proof.change(change);
  times.push(systemClock.monotonic() - began);
  for (const word of [character, fault]) counts.set(word, (counts.get(word) ?? 0) + 1);
  process.stderr.write(`${change + 1} ${character}, ${fault}: ${rounded((times.at(-1) ?? 0) / 1000)} s\n`);
}
console.log(
  JSON.stringify({
    bench: "config-changes",
    changes,
    seed,
    ...Object.fromEntries(counts),
    processes: proof.processes,
    wentFurtherBack: proof.wentFurtherBack,
    changeP50Ms: rounded(quantile(times, 0.5)),
    changeMaxMs: rounded(Math.max(...times)),
    load: load(),
  }),
);
