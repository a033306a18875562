// One pod from the removal of its manifest to gone, beside the bare CRI calls; in turns, as a ratio.
import { measurePods } from "./lib/pod-rounds.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 20);
const { stop, rawStop } = await measurePods(rounds);
console.log(
  JSON.stringify({
    bench: "pod-stop",
    rounds,
    p50Ms: rounded(quantile(stop, 0.5)),
    rawP50Ms: rounded(quantile(rawStop, 0.5)),
    ratio: rounded(quantile(stop, 0.5) / quantile(rawStop, 0.5), 2),
  }),
);
