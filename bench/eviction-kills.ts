// The agent is killed while it evicts: the one that eats goes, nobody else is touched, and it is said as if nothing had been
// (`npm run prove:evictions`). NODELET_SEED repeats a run, NODELET_KILLS is how many kills.
import { systemClock } from "../src/ground/base/index.ts";
import type { Pod, PodSpec } from "../src/ground/model/index.ts";
import { isReady } from "../test/support/agent.ts";
import { ApiCluster } from "../test/support/api-cluster.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { smallPodMemory, untilCondition, untilPressed } from "../test/support/memory-eater.ts";
import { seededRandom } from "../test/support/seeded-random.ts";

const kills = Number(process.env["NODELET_KILLS"] ?? 30);
const seed = Number(process.env["NODELET_SEED"] ?? Date.now() % 1_000_000);
const random = seededRandom(seed);
const never = new AbortController().signal;
/** An eviction is over within less, from crossing to the last status. */
const longestDelayMs = 400;
const longestAwayMs = 1_000;

const incidents: string[] = [];
let killedBefore = 0;
await using containerd = await startContainerd();
await using cluster = await ApiCluster.start(containerd, smallPodMemory);

// They hold memory too and ask for none, so that each of them could be the next.
const bystanders = ["bystander-0", "bystander-1", "bystander-2"];
for (const name of bystanders) await cluster.create(name, holding(15, "Always"));
for (const name of bystanders) await cluster.until(name, "ready", isReady);
const before = await look(bystanders);

for (let round = 1; round <= kills; round++) {
  const name = `eater-${round}`;
  await untilCondition(cluster, "MemoryPressure", "False");
  await cluster.create(name, holding(300, round % 2 === 0 ? "Always" : "Never"));
  await untilPressed(containerd);
  await systemClock.sleep(random() * longestDelayMs, never);
  if ((await cluster.pod(name))?.status?.phase !== "Failed") killedBefore++;
  await cluster.agent.kill9();
  await systemClock.sleep(random() * longestAwayMs, never);
  await cluster.agent.launch();
  const pod = await cluster.until(name, "it is over", ({ status }) => status?.phase === "Failed", 90_000);
  const { reason, message = "", conditions } = pod.status ?? {};
  const target = conditions?.find(({ type }) => type === "DisruptionTarget");
  if (reason !== "Evicted" || !message.startsWith("The node was low on resource: memory.")) {
    incidents.push(`${name} (${pod.spec?.restartPolicy}): reason ${reason}, message ${message}`);
  }
  if (target?.reason !== "TerminationByKubelet") incidents.push(`${name}: no condition DisruptionTarget`);
  for (const [other, found] of await look(bystanders)) {
    if (found !== before.get(other)) incidents.push(`round ${round}, ${other}: ${before.get(other)} became ${found}`);
  }
  await cluster.delete(name, 0);
  await cluster.untilGone(name);
  console.error(`${round}: ${pod.spec?.restartPolicy}, ${reason}`);
}
for (const incident of incidents) console.error(incident);
console.log(JSON.stringify({ bench: "eviction-kills", seed, kills, killedBefore, incidents: incidents.length }));
if (incidents.length > 0) process.exitCode = 1;

/** Takes so much memory, keeps it, and does not listen to SIGTERM. */
function holding(megabytes: number, restartPolicy: "Always" | "Never"): Partial<PodSpec> {
  const script = `trap '' TERM; { dd if=/dev/zero bs=1M count=${megabytes} 2>/dev/null; sleep 100000; } | tail`;
  return {
    restartPolicy,
    terminationGracePeriodSeconds: 30,
    containers: [{ name: "main", image: containerd.images.busybox, command: ["sh", "-c", script] }],
  };
}

async function look(names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const shown = (pod: Pod | undefined): string => {
    const [container] = pod?.status?.containerStatuses ?? [];
    return `${pod?.status?.phase} ${container?.containerID} restarted ${container?.restartCount}`;
  };
  const found = new Map<string, string>();
  for (const name of names) found.set(name, shown(await cluster.pod(name)));
  return found;
}
