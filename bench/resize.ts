// A resize: patch to the kernel's files of the container, beside two bare CRI updates and one API round trip. Args: rounds.
import { resources } from "../src/connections/kube/index.ts";
import { systemClock } from "../src/ground/base/index.ts";
import { isReady } from "../test/support/agent.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { parseExposition } from "../test/support/exposition.ts";
import { RawRuntime, untilTold } from "../test/support/raw-runtime.ts";
import { kernelLimits, limitsOf } from "../test/support/resize-proof/kernel-limits.ts";
import { hasSettled, resizable, runtimeId } from "../test/support/resize-proof/resizing.ts";
import { asResources, same } from "../test/support/resize-proof/wishes.ts";
import { startBenchCluster } from "./lib/bench-cluster.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const rounds = Number(process.argv[2] ?? 40);
const bystanders = 20;
const forever = new AbortController().signal;

await using containerd = await startContainerd();
await using cluster = await startBenchCluster(containerd);
// The agent would take pods it does not know for orphans, so the bare calls go to a runtime of their own.
await using otherContainerd = await startContainerd();
using raw = new RawRuntime(otherContainerd);
const image = containerd.images.busybox;
const spec = { containers: [resizable(image, "main", same(100, 64), "NotRequired")], terminationGracePeriodSeconds: 1 };
const names = ["resized", ...Array.from({ length: bystanders }, (_, index) => `bystander-${index}`)];
const small = { ...spec, containers: [resizable(image, "main", same(20, 16), "NotRequired")] };
for (const name of names) await cluster.create(name, name === "resized" ? spec : small);
for (const name of names) await cluster.until(name, "ready", isReady, 180_000);
const pod = await cluster.until("resized", "ready", isReady);
const uid = pod.metadata?.uid ?? "";
const container = runtimeId(pod, "main");
const bare = await raw.start("raw", untilTold);
const config = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "trip" } };
await cluster.admin.create(resources.configMaps, { namespace: "default" }, config, forever);

const times = { resize: [] as number[], updates: [] as number[], trip: [] as number[] };
const syncsBefore = await syncs();
for (let round = -2; round < rounds; round++) {
  // Up and down in turn: both orders of writing count.
  const wish = same(round % 2 === 0 ? 200 + (round + 2) : 100 + (round + 2), round % 2 === 0 ? 96 : 64);
  const wanted = JSON.stringify(limitsOf(wish));
  const body = { spec: { containers: [{ name: "main", resources: asResources(wish) }] } };
  const ref = { namespace: "default", name: "resized", subresource: "resize" };
  const resize = await timed(async () => {
    const patched = cluster.admin.patch(resources.pods, ref, { type: "strategic", body }, forever);
    while (JSON.stringify(kernelLimits(uid, container)) !== wanted) await systemClock.sleep(1, forever);
    await patched;
  });
  await cluster.until("resized", "told", (found) => hasSettled(found, "main", wish));
  const trip = await timed(() =>
    cluster.admin.patch(
      resources.configMaps,
      { namespace: "default", name: "trip" },
      { type: "strategic", body: { data: { round: String(round) } } },
      forever,
    ),
  );
  const { runtime } = raw.cri;
  const update = (memory: number, cpu: number) =>
    runtime.updateContainerResources({
      containerId: bare.containerId,
      linux: {
        ...{ cpuPeriod: 100_000n, cpuQuota: BigInt(cpu * 100), cpuShares: BigInt(cpu), oomScoreAdj: 0n },
        ...{ memoryLimitInBytes: BigInt(memory << 20), memorySwapLimitInBytes: 0n, cpusetCpus: "", cpusetMems: "" },
        ...{ hugepageLimits: [], unified: {} },
      },
      windows: undefined,
      annotations: {},
    });
  const updates = await timed(async () => {
    await update(wish.limits.memory, 100);
    await update(wish.limits.memory, wish.limits.cpu);
  });
  if (round < 0) continue;
  times.resize.push(resize);
  times.updates.push(updates);
  times.trip.push(trip);
}
const syncsOfAll = (await syncs()) - syncsBefore;
await raw.stop(bare, 1);

const [resizeP50, updatesP50, tripP50] = [times.resize, times.updates, times.trip].map((all) => quantile(all, 0.5));
const ratio = rounded((resizeP50 ?? 0) / ((updatesP50 ?? 0) + (tripP50 ?? 0)), 2);
const syncsPerResize = rounded(syncsOfAll / (rounds + 2), 2);
console.log(
  JSON.stringify({
    bench: "resize",
    rounds,
    resizeP50Ms: rounded(resizeP50 ?? 0),
    twoUpdatesP50Ms: rounded(updatesP50 ?? 0),
    apiTripP50Ms: rounded(tripP50 ?? 0),
    ratio,
    bystanders,
    syncsPerResize,
  }),
);
// The resized pod is synced for the change and for the echo of its status; one more for each bystander would show.
if (syncsPerResize > bystanders / 2) {
  console.error(`${syncsPerResize} syncs for each resize: other pods are woken`);
  process.exitCode = 1;
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = systemClock.monotonic();
  await work();
  return systemClock.monotonic() - began;
}

/** How many syncs of pods there have been. */
async function syncs(): Promise<number> {
  const text = await cluster.admin.getText("/api/v1/nodes/test-node/proxy/metrics", AbortSignal.timeout(30_000));
  const family = parseExposition(text).get("kubelet_pod_worker_duration_seconds");
  const counts = (family?.samples ?? []).filter(({ name }) => name.endsWith("_count"));
  return counts.reduce((sum, { value }) => sum + value, 0);
}
