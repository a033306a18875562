// 1,000 pods with 3 volumes each come and go on a real file system: how fast, and is anything left behind?
// Usage: npm run bench volume-churn [-- PODS [AT_ONCE]]
import { setMaxListeners } from "node:events";
import { readdir, readlink } from "node:fs/promises";
import { uidOf } from "../src/ground/model/index.ts";
import { podWithVolumes, VolumeNode } from "../test/support/volume-node.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const [podCount = 1_000, atOnce = 50] = process.argv.slice(2).map(Number);
const never = new AbortController().signal;
setMaxListeners(0, never);

await using node = await VolumeNode.create();
node.objects.configMap("settings", { a: "1", b: "2" });
node.objects.secret("keys", { k: "v" });
const rssBefore = process.memoryUsage.rss();
const cpuBefore = process.cpuUsage();
const startedAt = performance.now();
const mountMs: number[] = [];
const unmountMs: number[] = [];
let mostMounts = 0;

async function live(): Promise<void> {
  const pod = podWithVolumes([
    { name: "scratch", emptyDir: {} },
    { name: "settings", configMap: { name: "settings" } },
    { name: "keys", secret: { secretName: "keys" } },
  ]);
  const before = performance.now();
  await node.volumes.mount(pod, never);
  const mounted = performance.now();
  mountMs.push(mounted - before);
  if (mountMs.length % 100 === 0) mostMounts = Math.max(mostMounts, (await node.mounts()).length);
  const unmounting = performance.now();
  await node.volumes.unmount(uidOf(pod));
  unmountMs.push(performance.now() - unmounting);
}

for (let started = 0; started < podCount; started += atOnce) {
  await Promise.all(Array.from({ length: Math.min(atOnce, podCount - started) }, live));
}
const elapsedMs = performance.now() - startedAt;
const { user, system } = process.cpuUsage(cpuBefore);
const report = await node.volumes.cleanOrphanedDirectories(new Set(), never);

/** Open descriptors that watch files for changes. */
async function watchers(): Promise<number> {
  const links = await Promise.all(
    (await readdir("/proc/self/fd")).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")),
  );
  return links.filter((link) => link.includes("inotify")).length;
}

console.log(
  JSON.stringify({
    bench: "volume-churn",
    pods: podCount,
    volumes: podCount * 3,
    atOnce,
    podsPerSecond: rounded(podCount / (elapsedMs / 1000)),
    cpuMsPerPod: rounded((user + system) / 1000 / podCount, 2),
    mountMs: { p50: rounded(quantile(mountMs, 0.5)), p99: rounded(quantile(mountMs, 0.99)) },
    unmountMs: { p50: rounded(quantile(unmountMs, 0.5)), p99: rounded(quantile(unmountMs, 0.99)) },
    mostMountsSeen: mostMounts,
    rssMb: { before: rounded(rssBefore / 2 ** 20), after: rounded(process.memoryUsage.rss() / 2 ** 20) },
    left: {
      mounts: (await node.mounts()).length,
      podDirectories: (await readdir(node.podsDir)).length,
      orphanProblems: report.problems.length,
      watches: node.objects.watches,
      fileWatchers: await watchers(),
      ...node.volumes.size,
    },
  }),
);
