// Pods come and go for half an hour: memory, timers, sockets and listeners of the agent stay flat. Args: pods, minutes.
import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { exitsAfter } from "../src/beside/hollow/index.ts";
import { systemClock } from "../src/ground/base/index.ts";
import { eventually } from "../test/support/agent.ts";
import { HollowCluster } from "../test/support/hollow-cluster.ts";
import { rounded } from "./lib/statistics.ts";

const podCount = Number(process.argv[2] ?? 500);
const minutes = Number(process.argv[3] ?? 30);
/** So many are there at a time. */
const crowd = 20;
const samples = 6;
const forever = new AbortController().signal;

interface Probe {
  readonly rss: number;
  readonly heapUsed: number;
  readonly active: Readonly<Record<string, number>>;
  readonly objects: Readonly<Record<string, number>>;
}

const directory = mkdtempSync(join(tmpdir(), "nodelet-soak-"));
const probeFile = join(directory, "probe.json");
const probe = fileURLToPath(new URL("lib/process-probe.mjs", import.meta.url));
const env = { NODELET_PROBE_FILE: probeFile, NODE_OPTIONS: `--import=${probe}` };
const logFile = join(directory, "agent.log");
const log = openSync(logFile, "a");
await using cluster = await HollowCluster.start({ env, stderr: log, args: ["-v=2"] });
void cluster.daemon.exited.then(({ code, signal }) => {
  if (isOver) return;
  console.error(`the agent ended with ${code ?? signal}; its log is ${logFile}`);
  process.exit(1);
});
let isOver = false;
// A third of the pods restart now and then, a third end by themselves, the others just run.
cluster.runtime.behave("crashes", exitsAfter(5_000, 1));
cluster.runtime.behave("ends", exitsAfter(8_000, 0));
const kinds = [
  { containers: [{ name: "main", image: "busybox:1" }] },
  { containers: [{ name: "crashes", image: "busybox:1" }] },
  { restartPolicy: "Never", containers: [{ name: "ends", image: "busybox:1" }] },
] as const;

const taken: Probe[] = [];
const settleMs = Math.min(60_000, (minutes * 60_000) / 10);
const everyMs = (minutes * 60_000 - settleMs * 2) / podCount;
const alive: string[] = [];
for (let index = 0; index < podCount; index++) {
  const name = `soak-${index}`;
  const kind = kinds[index % kinds.length] ?? kinds[0];
  await cluster.create(name, { terminationGracePeriodSeconds: 2, ...kind });
  alive.push(name);
  if (alive.length > crowd) await cluster.delete(alive.shift() ?? "");
  // The first is taken once the crowd has come and been replaced once: caches are filled by then.
  if (index >= crowd * 2 && (index - crowd * 2) % Math.ceil((podCount - crowd * 2) / samples) === 0) {
    const sample = await take();
    taken.push(sample);
    console.error(JSON.stringify({ pods: index, rssMb: megabytes(sample.rss), ...shown(sample) }));
  }
  await systemClock.sleep(everyMs, forever);
}
for (const name of alive) await cluster.delete(name);
await cluster.until((pods) => pods.length === 0);
await systemClock.sleep(settleMs, forever);
const last = await take();
isOver = true;
const left = { containers: cluster.runtime.containers().length, sandboxes: cluster.runtime.sandboxes().length };
const warnings = readFileSync(logFile, "utf8").match(/MaxListenersExceeded|leak detected/g)?.length ?? 0;
rmSync(directory, { recursive: true, force: true });

console.log(
  JSON.stringify({
    bench: "api-soak",
    pods: podCount,
    minutes,
    rssMb: [...taken, last].map(({ rss }) => megabytes(rss)),
    heapMb: [...taken, last].map(({ heapUsed }) => megabytes(heapUsed)),
    openFiles: [...taken, last].map(({ active }) => active["openFiles"]),
    first: shown(taken[0]),
    last: shown(last),
    left,
    requests: cluster.requests.length,
    warnings,
  }),
);

async function take(): Promise<Probe> {
  const { pid } = cluster.daemon;
  rmSync(probeFile, { force: true });
  cluster.daemon.signal("SIGUSR2");
  const found = await eventually(
    async (): Promise<Probe> => JSON.parse(readFileSync(probeFile, "utf8")) as Probe,
    `the agent says what it holds (its log is ${logFile})`,
    120_000,
  );
  const openFiles = readdirSync(`/proc/${pid}/fd`).length;
  return { ...found, active: { ...found.active, openFiles } };
}

function shown(sample: Probe | undefined): object {
  return { ...sample?.active, ...sample?.objects };
}

function megabytes(bytes: number): number {
  return rounded(bytes / 2 ** 20, 1);
}
