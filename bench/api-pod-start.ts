// Pods of the API: create to Running and delete to gone as a watcher sees it, exit to status; beside the bare runtime.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { Informer, resources, withoutManagedFields } from "../src/connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../src/ground/base/index.ts";
import type { Pod } from "../src/ground/model/index.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { RawRuntime, untilTold } from "../test/support/raw-runtime.ts";
import { startBenchCluster } from "./lib/bench-cluster.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 20);

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

/** The moment at which the watcher sees the pod, or its absence, in the wanted state. */
function when(name: string, condition: (pod: Pod | undefined) => boolean): Promise<number> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (!condition(watcher.get("default", name))) return;
      stop();
      resolve(systemClock.monotonic());
    };
    const stop = watcher.onChange(check);
    check();
  });
}

const times = {
  start: [] as number[],
  rawStart: [] as number[],
  stop: [] as number[],
  rawStop: [] as number[],
  exit: [] as number[],
  rawExit: [] as number[],
};
for (let round = -1; round < rounds; round++) {
  const name = `pod-${round + 1}`;
  const container = { name: "main", image: containerd.images.busybox, command: [...untilTold] };
  const began = systemClock.monotonic();
  await cluster.create(name, { terminationGracePeriodSeconds: 5, containers: [container] });
  const running = await when(name, (pod) => pod?.status?.phase === "Running");
  const deleted = systemClock.monotonic();
  await cluster.delete(name);
  const gone = await when(name, (pod) => pod === undefined);

  // The last thing the container does is to touch a file of the node: its time is the moment of the exit.
  const mark = join(containerd.stateDir, `exit-${round + 1}`);
  await cluster.create(`${name}-exit`, {
    restartPolicy: "Never",
    containers: [
      {
        ...container,
        command: ["sh", "-c", "sleep 0.5; echo > /marks/$MARK; exit 7"],
        env: [{ name: "MARK", value: `exit-${round + 1}` }],
        volumeMounts: [{ name: "marks", mountPath: "/marks" }],
      },
    ],
    volumes: [{ name: "marks", hostPath: { path: containerd.stateDir } }],
  });
  await when(`${name}-exit`, (pod) => pod?.status?.containerStatuses?.[0]?.state?.terminated !== undefined);
  const seen = systemClock.now();
  const exited = (await stat(mark)).mtimeMs;
  await cluster.delete(`${name}-exit`, 0);

  const rawBegan = systemClock.monotonic();
  const pod = await raw.start(`raw-${round + 1}`, untilTold);
  const rawRunning = systemClock.monotonic();
  await raw.stop(pod, 5);
  const rawGone = systemClock.monotonic();
  const rawExited = await rawExit(`raw-exit-${round + 1}`);
  if (round < 0) continue;
  times.start.push(running - began);
  times.stop.push(gone - deleted);
  times.rawStart.push(rawRunning - rawBegan);
  times.rawStop.push(rawGone - rawRunning);
  times.exit.push(seen - exited);
  times.rawExit.push(rawExited);
}

/** How long the bare runtime takes to know of an exit: what nobody who asks it can undercut. */
async function rawExit(name: string): Promise<number> {
  const { runtime } = raw.cri;
  const ended = await raw.start(name, ["sh", "-c", "sleep 0.5; echo > /dev/termination-log; exit 7"]);
  for (;;) {
    const { status } = await runtime.containerStatus({ containerId: ended.containerId, verbose: false });
    if (status !== undefined && status.finishedAt !== 0n) break;
    await systemClock.sleep(2, scope.signal);
  }
  const seen = systemClock.now();
  await raw.stop(ended, 1);
  return seen - (await stat(raw.terminationFile(name))).mtimeMs;
}
console.log(
  JSON.stringify({
    bench: "api-pod-start",
    rounds,
    startP50Ms: rounded(quantile(times.start, 0.5)),
    rawStartP50Ms: rounded(quantile(times.rawStart, 0.5)),
    startRatio: rounded(quantile(times.start, 0.5) / quantile(times.rawStart, 0.5), 2),
    stopP50Ms: rounded(quantile(times.stop, 0.5)),
    rawStopP50Ms: rounded(quantile(times.rawStop, 0.5)),
    stopRatio: rounded(quantile(times.stop, 0.5) / quantile(times.rawStop, 0.5), 2),
    exitToStatusP50Ms: rounded(quantile(times.exit, 0.5)),
    exitToStatusP99Ms: rounded(quantile(times.exit, 0.99)),
    rawExitP50Ms: rounded(quantile(times.rawExit, 0.5)),
    rawExitP99Ms: rounded(quantile(times.rawExit, 0.99)),
  }),
);
