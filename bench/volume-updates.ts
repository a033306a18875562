// A config map changes 100 times under 50 pods: how long until the new content is in the containers of all of them?
// The whole way is measured: the change is accepted by an API server, its watch reaches the agent, and the agent
// writes the volume that the container has mounted. Usage: npm run bench volume-updates [-- CHANGES [PODS]]
import { watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { resources } from "../src/connections/kube/index.ts";
import { systemClock } from "../src/ground/base/index.ts";
import { isReady } from "../test/support/agent.ts";
import { VolumeCluster } from "../test/support/volume-cluster.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const [changes = 100, podCount = 50] = process.argv.slice(2).map(Number);
const namespace = "default";
const padding = "x".repeat(10_000);
const signal = (): AbortSignal => AbortSignal.timeout(30_000);

await using volumes = await VolumeCluster.start();
const { cluster } = volumes;
const map = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings", namespace } };
await cluster.admin.create(resources.configMaps, { namespace }, { ...map, data: { value: "0", padding } }, signal());
const names = Array.from({ length: podCount }, (_, index) => `pod-${index}`);
const containers = [volumes.main({ volumeMounts: [{ name: "settings", mountPath: "/settings" }] })];
for (const name of names) {
  await cluster.create(name, { containers, volumes: [{ name: "settings", configMap: { name: "settings" } }] });
}
const pods = await Promise.all(names.map((name) => cluster.until(name, "ready", isReady, 300_000)));
const files = pods.map(({ metadata }) =>
  join(cluster.agent.rootDir, "pods", metadata?.uid ?? "", "volumes/kubernetes.io~configmap/settings/value"),
);

/** Resolves when the file holds the text; looks when the kernel says that the version link of its volume changed. */
async function arrives(file: string, text: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      readFile(file, "utf8").then(
        (found) => {
          if (found !== text) return;
          watcher.close();
          resolve(performance.now());
        },
        () => {},
      );
    };
    const watcher = watch(join(file, ".."), (_, name) => {
      if (name === "..data") look();
    });
    watcher.on("error", reject);
    look();
  });
}

// The agent has work left from the starts of so many pods.
await systemClock.sleep(5_000, signal());
const delays: number[] = [];
const loadBefore = loadavg()[0] ?? 0;
for (let turn = 1; turn <= changes; turn++) {
  const arrivals = files.map((file) => arrives(file, String(turn)));
  const start = performance.now();
  const change = { type: "merge", body: { data: { value: String(turn) } } } as const;
  await cluster.admin.patch(resources.configMaps, { namespace, name: "settings" }, change, signal());
  for (const at of await Promise.all(arrivals)) delays.push(at - start);
  await systemClock.sleep(20, signal());
}
const seen = await Promise.all(pods.map((pod) => volumes.sh(pod, "cat /settings/value")));
if (seen.some((text) => text !== String(changes))) throw new Error(`a container has old content: ${seen.join(" ")}`);

console.log(
  JSON.stringify({
    bench: "volume-updates",
    changes,
    pods: podCount,
    delayMs: {
      p50: rounded(quantile(delays, 0.5)),
      p99: rounded(quantile(delays, 0.99)),
      max: rounded(Math.max(...delays)),
    },
    loadBefore: rounded(loadBefore),
    wantedP99Ms: 1_000,
  }),
);
