// How long bin/nodelet takes until healthz answers, and the memory it then has, as ratios to bare node.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { systemClock } from "../src/ground/base/index.ts";
import { DaemonHome } from "../test/support/daemon.ts";
import { serveFakeRuntime } from "../test/support/served-runtime.ts";

const runs = Number(process.argv[2] ?? 7);
const settleMs = 2_000;
const never = new AbortController().signal;

interface Sample {
  readonly startMs: number;
  readonly rssMb: number;
}

const bare: Sample[] = [];
const agent: Sample[] = [];
for (let run = 0; run < runs; run++) {
  // Taken in turns, so that a busy moment of the machine hits both.
  bare.push(await measureBareNode());
  agent.push(await measureAgent());
}
const startMs = medianOf(agent, "startMs");
const rssMb = medianOf(agent, "rssMb");
const bareStartMs = medianOf(bare, "startMs");
const bareRssMb = medianOf(bare, "rssMb");
console.log(
  JSON.stringify({
    bench: "start",
    runs,
    startMs,
    bareStartMs,
    startRatio: round(startMs / bareStartMs),
    rssMb,
    bareRssMb,
    rssRatio: round(rssMb / bareRssMb),
    rssBudget: 2.0,
  }),
);

async function measureBareNode(): Promise<Sample> {
  const startedAt = systemClock.monotonic();
  spawnSync(process.execPath, ["-e", ""]);
  const startMs = systemClock.monotonic() - startedAt;
  const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000)"], { stdio: "ignore" });
  await systemClock.sleep(settleMs, never);
  const rssMb = rssOf(child.pid);
  child.kill();
  await once(child, "exit");
  return { startMs, rssMb };
}

async function measureAgent(): Promise<Sample> {
  await using home = await DaemonHome.create();
  await using _runtime = await serveFakeRuntime(home.runtimeSocket);
  const startedAt = systemClock.monotonic();
  const daemon = home.start();
  await daemon.isUp();
  const startMs = systemClock.monotonic() - startedAt;
  await daemon.until("it had started", () => daemon.stderr.includes('"Started nodelet"'));
  await systemClock.sleep(settleMs, never);
  const rssMb = rssOf(daemon.pid);
  daemon.signal("SIGTERM");
  await daemon.exited;
  return { startMs, rssMb };
}

function rssOf(pid: number | undefined): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

function medianOf(samples: readonly Sample[], field: keyof Sample): number {
  const sorted = samples.map((sample) => sample[field]).sort((a, b) => a - b);
  return round(sorted[Math.floor(sorted.length / 2)] ?? Number.NaN);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
