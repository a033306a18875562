// What an idle agent with 50 pods costs in a minute: calls of the (simulated) runtime, CPU, memory. Args: pods, seconds.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LocalClient } from "../src/beside/cli/index.ts";
import { FakeRuntime, serveRuntime } from "../src/beside/hollow/index.ts";
import { CgroupDriver } from "../src/connections/cri/index.ts";
import { systemClock } from "../src/ground/base/index.ts";
import type { Pod } from "../src/ground/model/index.ts";
import { eventually } from "../test/support/agent.ts";
import { DaemonHome } from "../test/support/daemon.ts";
import { rounded } from "./lib/statistics.ts";

const podCount = Number(process.argv[2] ?? 50);
const seconds = Number(process.argv[3] ?? 60);
/** Right after a start the agent looks more often whether it has missed something. */
const settleMs = 65_000;
const ticksPerSecond = 100;
const forever = new AbortController().signal;

await using home = await DaemonHome.create();
const fake = new FakeRuntime({ clock: systemClock, events: "offered", cgroupDriver: CgroupDriver.CGROUPFS });
fake.imageStore.preload("busybox:1");
await using _served = await serveRuntime({ runtime: fake.runtime, images: fake.images }, home.runtimeSocket);
const manifests = join(home.directory, "manifests");
mkdirSync(manifests);
home.configure({ staticPodPath: manifests });
const names = Array.from({ length: podCount }, (_, index) => `idle-${index}`);
for (const name of names) {
  const spec = { containers: [{ name: "main", image: "busybox:1" }] };
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec };
  writeFileSync(join(manifests, `${name}.json`), JSON.stringify(pod));
}
const daemon = home.start();
const client = new LocalClient(join(home.rootDir, "nodelet.sock"));
const pods = (): Promise<readonly Pod[]> => client.pods(AbortSignal.timeout(5_000));
const isUp = async (): Promise<boolean> =>
  (await pods()).filter(({ status }) => status?.phase === "Running").length === podCount;
await eventually(isUp, "all pods run", 120_000);
await systemClock.sleep(settleMs, forever);

const before = { calls: countCalls(), ticks: cpuTicks() };
await systemClock.sleep(seconds * 1000, forever);
const calls = countCalls() - before.calls;
const cpuSeconds = (cpuTicks() - before.ticks) / ticksPerSecond;
const rssKb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1];
for (const name of names) rmSync(join(manifests, `${name}.json`));
await eventually(async () => (await pods()).length === 0, "all pods are gone", 120_000);
daemon.signal("SIGTERM");
await daemon.exited;

console.log(
  JSON.stringify({
    bench: "idle",
    pods: podCount,
    seconds,
    callsPerMinute: rounded((calls * 60) / seconds),
    callsBudget: 10,
    cpuPercent: rounded((cpuSeconds / seconds) * 100, 2),
    rssMb: rounded(Number(rssKb) / 1024),
  }),
);

function countCalls(): number {
  return [...fake.callCounts().values()].reduce((sum, count) => sum + count, 0);
}

/** User and system time of the agent's process. */
function cpuTicks(): number {
  const fields = readFileSync(`/proc/${daemon.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}
