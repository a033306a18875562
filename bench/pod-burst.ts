// A burst of pods (30 unless told) from manifests to Running, beside the same burst of bare CRI calls; as a ratio.
import { systemClock } from "../src/ground/base/index.ts";
import { TestAgent } from "../test/support/agent.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { isGone, isRunning, PodMoments } from "../test/support/pod-moments.ts";
import { RawRuntime, untilTold } from "../test/support/raw-runtime.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const pods = Number(process.argv[2] ?? 30);
const rounds = Number(process.argv[3] ?? 3);

await using containerd = await startContainerd();
await using agent = await TestAgent.start(containerd);
await using moments = new PodMoments(agent);
// The agent would take pods it does not know for orphans, so the bare calls go to a runtime of their own.
await using otherContainerd = await startContainerd();
using raw = new RawRuntime(otherContainerd);
const results: { all: number; first: number; rawAll: number; rawFirst: number; gone: number; rawGone: number }[] = [];

for (let round = 0; round < rounds; round++) {
  const names = Array.from({ length: pods }, (_, index) => `b${round}-${index}`);
  const began = systemClock.monotonic();
  const ready = Promise.all(names.map((name) => moments.when(name, isRunning)));
  for (const name of names) {
    await agent.apply(name, {
      terminationGracePeriodSeconds: 5,
      containers: [{ name: "main", image: containerd.images.busybox, command: [...untilTold] }],
    });
  }
  const times = (await ready).map((time) => time - began);
  const removed = systemClock.monotonic();
  const gone = Promise.all(names.map((name) => moments.when(name, isGone)));
  for (const name of names) await agent.remove(name);
  const goneTimes = (await gone).map((time) => time - removed);

  const rawBegan = systemClock.monotonic();
  const started = await Promise.all(
    names.map(async (name) => {
      const pod = await raw.start(`raw-${name}`, untilTold);
      return { pod, time: systemClock.monotonic() - rawBegan };
    }),
  );
  const rawRemoved = systemClock.monotonic();
  await Promise.all(started.map(({ pod }) => raw.stop(pod, 5)));
  const rawTimes = started.map(({ time }) => time);
  results.push({
    all: Math.max(...times),
    first: Math.min(...times),
    rawAll: Math.max(...rawTimes),
    rawFirst: Math.min(...rawTimes),
    gone: Math.max(...goneTimes),
    rawGone: systemClock.monotonic() - rawRemoved,
  });
}

const middle = (key: keyof (typeof results)[number]): number =>
  quantile(
    results.map((result) => result[key]),
    0.5,
  );
console.log(
  JSON.stringify({
    bench: "pod-burst",
    pods,
    rounds,
    allRunningMs: rounded(middle("all")),
    rawAllRunningMs: rounded(middle("rawAll")),
    burstRatio: rounded(middle("all") / middle("rawAll"), 2),
    firstRunningMs: rounded(middle("first")),
    rawFirstRunningMs: rounded(middle("rawFirst")),
    allGoneMs: rounded(middle("gone")),
    rawAllGoneMs: rounded(middle("rawGone")),
  }),
);
