// Pods of the API (50 unless told) created and deleted at once: all Running, all gone, beside as many bare CRI calls.

import { Informer, resources, withoutManagedFields } from "../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../src/ground/base/index.ts";
import type { Pod } from "../src/ground/model/index.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { RawRuntime, untilTold } from "../test/support/raw-runtime.ts";
import { startBenchCluster } from "./lib/bench-cluster.ts";
import { rounded } from "./lib/statistics.ts";

const count = Number(process.argv[2] ?? 50);
const graceSeconds = 5;

await using containerd = await startContainerd();
await using cluster = await startBenchCluster(containerd);
// The agent would take pods it does not know for orphans, so the bare calls go to a runtime of their own.
await using otherContainerd = await startContainerd();
using raw = new RawRuntime(otherContainerd);
await using scope = new TaskScope();
const watcher = new Informer<Pod>(
  { resource: resources.pods, keep: withoutManagedFields },
  { client: cluster.admin, clock: systemClock, log: silentLogger, random: Math.random },
);
scope.spawn("watcher", (signal) => watcher.run(signal));
await watcher.synced(scope.signal);

const names = Array.from({ length: count }, (_, index) => `burst-${index}`);
const containers = [{ name: "main", image: containerd.images.busybox, command: [...untilTold] }];
const created = systemClock.monotonic();
await Promise.all(
  names.map((name) => cluster.create(name, { terminationGracePeriodSeconds: graceSeconds, containers })),
);
const running = await when((pods) => pods.filter(({ status }) => status?.phase === "Running").length === count);
const deleted = systemClock.monotonic();
await Promise.all(names.map((name) => cluster.delete(name)));
const gone = await when((pods) => pods.length === 0);

const rawCreated = systemClock.monotonic();
const started = await Promise.all(names.map((name) => raw.start(`raw-${name}`, untilTold)));
const rawRunning = systemClock.monotonic();
await Promise.all(started.map((pod) => raw.stop(pod, graceSeconds)));
const rawGone = systemClock.monotonic();

console.log(
  JSON.stringify({
    bench: "api-pod-burst",
    pods: count,
    allRunningMs: rounded(running - created),
    rawAllRunningMs: rounded(rawRunning - rawCreated),
    startRatio: rounded((running - created) / (rawRunning - rawCreated), 2),
    allGoneMs: rounded(gone - deleted),
    rawAllGoneMs: rounded(rawGone - rawRunning),
    goneRatio: rounded((gone - deleted) / (rawGone - rawRunning), 2),
  }),
);

/** The moment at which the watcher sees the pods as wanted. */
function when(condition: (pods: readonly Pod[]) => boolean): Promise<number> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (!condition(watcher.list())) return;
      stop();
      resolve(systemClock.monotonic());
    };
    const stop = watcher.onChange(check);
    check();
  });
}
