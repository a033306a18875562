// A config map changes 100 times under 50 pods: how long until the new content is in the files of all of them?
// Usage: npm run bench volume-updates [-- CHANGES [PODS]]
import { setMaxListeners } from "node:events";
import { watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../src/base/index.ts";
import { uidOf } from "../src/model/index.ts";
import { podWithVolumes, VolumeNode } from "../test/support/volume-node.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const [changes = 100, podCount = 50] = process.argv.slice(2).map(Number);
const never = new AbortController().signal;
setMaxListeners(0, never);

await using node = await VolumeNode.create();
node.objects.configMap("settings", { value: "0", padding: "x".repeat(10_000) });
const pods = Array.from({ length: podCount }, () =>
  podWithVolumes([{ name: "settings", configMap: { name: "settings" } }]),
);
await Promise.all(pods.map((pod) => node.volumes.mount(pod, never)));
const files = pods.flatMap((pod) => [
  join(node.volumePath(uidOf(pod), "kubernetes.io/configmap", "settings"), "value"),
]);

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

const delays: number[] = [];
const cpuBefore = process.cpuUsage();
for (let turn = 1; turn <= changes; turn++) {
  const arrivals = files.map((file) => arrives(file, String(turn)));
  const start = performance.now();
  node.objects.configMap("settings", { value: String(turn), padding: "x".repeat(10_000) });
  for (const at of await Promise.all(arrivals)) delays.push(at - start);
  await systemClock.sleep(5, never);
}

const { user, system } = process.cpuUsage(cpuBefore);
console.log(
  JSON.stringify({
    bench: "volume-updates",
    changes,
    pods: podCount,
    filesPerChange: files.length,
    watches: node.objects.watches,
    delayMs: {
      p50: rounded(quantile(delays, 0.5)),
      p99: rounded(quantile(delays, 0.99)),
      max: rounded(Math.max(...delays)),
    },
    cpuMsPerChange: rounded((user + system) / 1000 / changes),
    ownMetricP99Ms: rounded(quantile(node.contentDelaysMs, 0.99)),
  }),
);
for (const pod of pods) await node.volumes.unmount(uidOf(pod));
