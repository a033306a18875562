// One pod from manifest to Running, beside the bare CRI calls; in turns, as a ratio.
import { measurePods } from "./lib/pod-rounds.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 20);
const { start, rawStart } = await measurePods(rounds);
console.log(
  JSON.stringify({
    bench: "pod-start",
    rounds,
    p50Ms: rounded(quantile(start, 0.5)),
    rawP50Ms: rounded(quantile(rawStart, 0.5)),
    ratio: rounded(quantile(start, 0.5) / quantile(rawStart, 0.5), 2),
  }),
);
