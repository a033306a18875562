// What a scrape of every metrics endpoint costs with 100 pods of two containers and real cgroups. Args: pods, rounds.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { join } from "node:path";
import { LocalClient } from "../src/beside/cli/local-client.ts";
import { createCgroup } from "../src/beside/cli/machine/cgroups.ts";
import { FakeRuntime, serveRuntime } from "../src/beside/hollow/index.ts";
import { CgroupDriver } from "../src/connections/cri/index.ts";
import { readCgroupLayout } from "../src/connections/host/index.ts";
import { systemClock } from "../src/ground/base/index.ts";
import { eventually } from "../test/support/agent.ts";
import { DaemonHome } from "../test/support/daemon.ts";
import { parseExposition } from "../test/support/exposition.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const podCount = Number(process.argv[2] ?? 100);
const rounds = Number(process.argv[3] ?? 6);
/** Figures are good for five seconds: what is asked later pays for new ones. */
const pauseMs = 5_200;
const ticksPerSecond = 100;
const forever = new AbortController().signal;
const paths = [
  "/metrics/resource",
  "/metrics/cadvisor",
  "/metrics",
  "/metrics/probes",
  "/metrics/slis",
  "/stats/summary?only_cpu_and_memory=true",
  "/stats/summary",
];

await using home = await DaemonHome.create();
const cgroupRoot = home.cgroup;
const fake = new FakeRuntime({ clock: systemClock, events: "offered", cgroupDriver: CgroupDriver.CGROUPFS });
fake.imageStore.preload("busybox:1");
await using _served = await serveRuntime({ runtime: fake.runtime, images: fake.images }, home.runtimeSocket);
const manifests = join(home.directory, "manifests");
mkdirSync(manifests);
home.configure({ staticPodPath: manifests, cgroupsPerQOS: true, cgroupRoot, enforceNodeAllocatable: ["pods"] });
const names = Array.from({ length: podCount }, (_, index) => `metered-${index}`);
for (const name of names) {
  const readinessProbe = { exec: { command: ["true"] }, periodSeconds: 60 };
  const containers = ["main", "side"].map((container) => ({ name: container, image: "busybox:1", readinessProbe }));
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name }, spec: { containers } };
  writeFileSync(join(manifests, `${name}.json`), JSON.stringify(pod));
}

const processes: ChildProcess[] = [];
const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
await createCgroup(cgroupRoot);
const daemon = home.start();
try {
  const client = new LocalClient(join(home.rootDir, "nodelet.sock"));
  const pods = () => client.pods(AbortSignal.timeout(5_000));
  const isUp = async (): Promise<boolean> =>
    (await pods()).filter(({ status }) => status?.phase === "Running").length === podCount;
  await eventually(isUp, "all pods run", 120_000);
  for (const { id, config } of fake.sandboxes()) await fillCgroup(config.linux?.cgroupParent, id);
  for (const { id, sandbox } of fake.containers()) await fillCgroup(sandbox.config.linux?.cgroupParent, id);
  const idleRss = rssMb();

  const times = new Map(paths.map((path) => [path, [] as number[]]));
  const sizes = new Map<string, number>();
  for (const path of paths) await scrape(path);
  const ticks: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await systemClock.sleep(pauseMs, forever);
    const before = cpuTicks();
    for (const path of paths) {
      const { ms, text } = await scrape(path);
      times.get(path)?.push(ms);
      sizes.set(path, text.length);
    }
    ticks.push(cpuTicks() - before);
  }
  const series = parseExposition((await scrape("/metrics/cadvisor")).text);
  console.log(
    JSON.stringify({
      bench: "metrics",
      pods: podCount,
      containers: fake.containers().length,
      rounds,
      cpuMsPerRound: rounded((ticks.reduce((sum, each) => sum + each, 0) / rounds / ticksPerSecond) * 1000),
      p50Ms: Object.fromEntries([...times].map(([path, all]) => [path, rounded(quantile(all, 0.5))])),
      worstMs: Object.fromEntries([...times].map(([path, all]) => [path, rounded(Math.max(...all))])),
      kilobytes: Object.fromEntries([...sizes].map(([path, bytes]) => [path, rounded(bytes / 1024)])),
      cadvisorSeries: [...series.values()].reduce((sum, { samples }) => sum + samples.length, 0),
      idleRssMb: idleRss,
      rssMb: rssMb(),
    }),
  );
  for (const name of names) rmSync(join(manifests, `${name}.json`));
  for (const child of processes) child.kill("SIGKILL");
  await eventually(async () => (await pods()).length === 0, "all pods are gone", 120_000);
} finally {
  for (const child of processes) child.kill("SIGKILL");
  daemon.signal("SIGTERM");
  await daemon.exited;
  agent.destroy();
}

async function scrape(path: string): Promise<{ readonly ms: number; readonly text: string }> {
  const startedAt = systemClock.monotonic();
  const sent = request({ host: "127.0.0.1", port: home.apiPort, path, agent }).end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString();
  if (response.statusCode !== 200) throw new Error(`${path}: ${response.statusCode} ${text}`);
  return { ms: systemClock.monotonic() - startedAt, text };
}

/** Makes the cgroup that a real runtime would have made, with a process in it. */
async function fillCgroup(parent: string | undefined, id: string): Promise<void> {
  if (parent === undefined) return;
  const child = spawn("sleep", ["1d"], { stdio: "ignore" });
  processes.push(child);
  const layout = await readCgroupLayout();
  const hierarchies = layout.version === 2 ? [layout.mountPoint] : new Set(layout.mountPoints.values());
  for (const hierarchy of hierarchies) {
    if (!existsSync(join(hierarchy, parent))) continue;
    const directory = join(hierarchy, parent, id);
    mkdirSync(directory, { recursive: true });
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      if (!existsSync(join(directory, file))) continue;
      const inherited = readFileSync(join(hierarchy, parent, file), "utf8");
      if (inherited.trim() !== "") writeFileSync(join(directory, file), inherited);
    }
    appendFileSync(join(directory, "cgroup.procs"), String(child.pid));
  }
}

/** User and system time of the agent's process. */
function cpuTicks(): number {
  const fields = readFileSync(`/proc/${daemon.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

function rssMb(): number {
  return rounded(Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${daemon.pid}/status`, "utf8"))?.[1]) / 1024);
}
