// What traces cost: CPU time of the agent for pods that come and go, with every sync traced, one in a hundred, to a dead collector, and without. Args: pods, rounds.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DaemonHome } from "../test/support/daemon.ts";
import { freePort } from "../test/support/free-port.ts";
import { rssMb } from "../test/support/process-figures.ts";
import { serveFakeRuntime } from "../test/support/served-runtime.ts";
import { TraceCollector } from "../test/support/trace-collector.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const pods = Number(process.argv[2] ?? 60);
const rounds = Number(process.argv[3] ?? 5);

interface Round {
  readonly cpuMs: number;
  readonly memoryMb: number;
}

/** CPU time of a process so far; the kernel counts hundredths of a second. */
function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const [user, system] = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 13)
    .map(Number);
  return ((user ?? 0) + (system ?? 0)) * 10;
}

/** One agent: its pods come, run and go. */
async function round(tracing: object | undefined): Promise<Round> {
  await using home = await DaemonHome.create();
  await using _runtime = await serveFakeRuntime(home.runtimeSocket);
  const manifests = join(home.directory, "manifests");
  mkdirSync(manifests);
  home.configure({ staticPodPath: manifests, ...(tracing !== undefined && { tracing }) });
  const agent = home.start({ env: { NODELET_HOST_SETTINGS: "leave" } });
  await agent.until("it had started", () => agent.stderr.includes('"Started nodelet"'));
  const before = cpuMs(agent.pid);
  const count = async (phase: string): Promise<number> => {
    const { items } = JSON.parse((await agent.ask("/pods")).text) as {
      items: { status?: { phase?: string } }[] | null;
    };
    return (items ?? []).filter(({ status }) => phase === "" || status?.phase === phase).length;
  };
  for (let index = 0; index < pods; index++) {
    const containers = [{ name: "main", image: "busybox:1" }];
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `pod-${index}` }, spec: { containers } };
    writeFileSync(join(manifests, `${index}.json`), JSON.stringify(pod));
  }
  await agent.until("all ran", async () => (await count("Running")) === pods);
  for (let index = 0; index < pods; index++) rmSync(join(manifests, `${index}.json`));
  await agent.until("all were gone", async () => (await count("")) === 0);
  return { cpuMs: cpuMs(agent.pid) - before, memoryMb: rssMb(agent.pid) };
}

using collector = await TraceCollector.start();
const modes = {
  off: undefined,
  all: { endpoint: collector.endpoint, samplingRatePerMillion: 1_000_000 },
  oneInHundred: { endpoint: collector.endpoint, samplingRatePerMillion: 10_000 },
  deadCollector: { endpoint: `127.0.0.1:${await freePort()}`, samplingRatePerMillion: 1_000_000 },
};
type Mode = keyof typeof modes;
const found: Record<Mode, Round[]> = { off: [], all: [], oneInHundred: [], deadCollector: [] };
// In turns, so that a busy moment of the machine hits all of them.
for (let index = 0; index < rounds; index++) {
  for (const [mode, tracing] of Object.entries(modes)) found[mode as Mode].push(await round(tracing));
}
const median = (mode: Mode, figure: keyof Round): number =>
  quantile(
    found[mode].map((each) => each[figure]),
    0.5,
  );
const ratio = (mode: Mode): number => rounded(median(mode, "cpuMs") / median("off", "cpuMs"), 2);
console.log(
  JSON.stringify({
    ...{ bench: "tracing", pods, rounds },
    cpuMsPerPodWithout: rounded(median("off", "cpuMs") / pods),
    cpuAll: ratio("all"),
    cpuOneInHundred: ratio("oneInHundred"),
    cpuDeadCollector: ratio("deadCollector"),
    memoryMbWithout: rounded(median("off", "memoryMb")),
    memoryMbAll: rounded(median("all", "memoryMb")),
    memoryMbDeadCollector: rounded(median("deadCollector", "memoryMb")),
    spansTaken: collector.names.length,
  }),
);
