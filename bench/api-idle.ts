// Requests that an idle node with 50 pods sends to the API server in a minute, heartbeats included. Args: pods, seconds.
import { systemClock } from "../src/ground/base/index.ts";
import { HollowCluster } from "../test/support/hollow-cluster.ts";
import { rounded } from "./lib/statistics.ts";

const podCount = Number(process.argv[2] ?? 50);
const seconds = Number(process.argv[3] ?? 300);
/** The events and statuses of the start are over by then. */
const settleMs = 60_000;
const forever = new AbortController().signal;

await using cluster = await HollowCluster.start();
const names = Array.from({ length: podCount }, (_, index) => `idle-${index}`);
await Promise.all(names.map((name) => cluster.create(name, { terminationGracePeriodSeconds: 1 })));
await cluster.until((pods) => pods.filter(({ status }) => status?.phase === "Running").length === podCount);
await systemClock.sleep(settleMs, forever);

const before = cluster.requests.length;
await systemClock.sleep(seconds * 1_000, forever);
const sent = cluster.requests.slice(before);
await Promise.all(names.map((name) => cluster.delete(name)));
await cluster.until((pods) => pods.length === 0);

const byKind: Record<string, number> = {};
for (const request of sent) {
  const kind = request.replaceAll(/idle-\d+/g, "…");
  byKind[kind] = (byKind[kind] ?? 0) + 1;
}
console.log(
  JSON.stringify({
    bench: "api-idle",
    pods: podCount,
    seconds,
    requestsPerMinute: rounded((sent.length * 60) / seconds, 1),
    requestsBudget: 12,
    byKind,
  }),
);
