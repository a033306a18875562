// Admission of 200 Guaranteed pods on a made-up machine of 256 CPUs, and a change of the shared pool beside bare CRI calls.
import { LinuxContainerResources } from "../src/connections/cri/index.ts";
import { CpuSet, silentLogger, systemClock, TaskScope } from "../src/ground/base/index.ts";
import { type ContainerId, parseQuantity, uidOf } from "../src/ground/model/index.ts";
import { CpusetKeeper, type KeptContainer, Placement } from "../src/pod/resources/index.ts";
import { startContainerd } from "../test/support/containerd.ts";
import { noCpuOptions } from "../test/support/cpu-manager.ts";
import { madeUpTopology } from "../test/support/made-up-topology.ts";
import { sizedPod } from "../test/support/pinned-pods.ts";
import { RawRuntime } from "../test/support/raw-runtime.ts";
import { until } from "../test/support/until.ts";
import { load } from "./lib/process-cost.ts";
import { quantile, rounded } from "./lib/statistics.ts";

const pods = 200;
const shared = Number(process.argv[2] ?? 20);
const rounds = 20;
const gibi = 1024 ** 3;

const loadBefore = load();
const admissions = await admit();
const moves = shared === 0 ? undefined : await move();
console.log(JSON.stringify({ bench: "allocate", ...admissions, ...moves, load: loadBefore }));

/** Eight NUMA nodes in two sockets; CPUs and memory are aligned, and every tenth pod leaves before the next ones come. */
async function admit() {
  const machine = madeUpTopology({
    sockets: 2,
    nodesPerSocket: 4,
    coresPerNode: 16,
    threads: 2,
    coresPerCache: 4,
    memoryBytes: 64 * gibi,
  });
  const times: number[] = [];
  let given = 0;
  for (let life = 0; life < 5; life++) {
    const here = new Set<string>();
    const placement = new Placement(
      {
        cpu: { options: noCpuOptions, reserved: CpuSet.parse("0,128"), reservedCount: 2, liftsQuota: true },
        memory: {
          reserved: [{ numaNode: 0, limits: { memory: "1Gi" } }],
          withheld: new Map([["memory", parseQuantity("1Gi")]]),
        },
        alignment: { policy: "restricted", scope: "container", prefersClosest: false, mostNodes: 8 },
      },
      {
        rootDir: "/",
        files: { read: async () => undefined, save: async () => undefined },
        clock: systemClock,
        log: silentLogger,
        readTopology: async () => machine,
        findRunning: async () => ({ areAny: false, has: () => false, ownerOf: () => undefined }),
        holds: (uid) => here.has(uid),
      },
    );
    await placement.start();
    for (let index = 0; index < pods; index++) {
      const pod = sizedPod(`pod-${index}`, { main: `${1 + (index % 2)} 1Gi` });
      const before = systemClock.monotonic();
      const { type } = placement.give(pod);
      times.push(systemClock.monotonic() - before);
      if (type === "given") {
        here.add(uidOf(pod));
        given++;
      }
      if (index % 10 === 9) here.delete(`pod-${index}`);
      // Files follow in the background, as they do in an agent.
      await systemClock.sleep(0, new AbortController().signal);
    }
  }
  const p50 = quantile(times, 0.5);
  const p99 = quantile(times, 0.99);
  return { pods, given: given / 5, admitP50Ms: rounded(p50, 3), admitP99Ms: rounded(p99, 3) };
}

/** Containers of a real runtime are moved from one pool to another and back, by the agent's part and by bare calls in turns. */
async function move() {
  await using containerd = await startContainerd();
  using raw = new RawRuntime(containerd);
  await using scope = new TaskScope();
  const ids: ContainerId[] = [];
  for (let index = 0; index < shared; index++) {
    ids.push((await raw.start(`shared-${index}`, ["sleep", "1d"])).containerId as ContainerId);
  }
  const tell = async (containerId: string, cpusetCpus: string): Promise<void> => {
    const linux = LinuxContainerResources.fromPartial({ cpusetCpus });
    await raw.cri.runtime.updateContainerResources({ containerId, linux, windows: undefined, annotations: {} });
  };
  let pool = "0-1";
  let told = 0;
  let onAllTold = (): void => {};
  const containers = ids.map((id): KeptContainer => ({ id, name: "main", pod: sizedPod(id, {}) }));
  const keeper = new CpusetKeeper(scope, {
    clock: systemClock,
    log: silentLogger,
    periodMs: 10_000,
    pinsCpus: true,
    running: () => containers,
    wantedFor: () => pool,
    async tellRuntime(id, cpus) {
      await tell(id, cpus);
      if (++told === shared) onAllTold();
    },
    inForce: async () => undefined,
  });
  await keeper.check();
  await until("all were told once", () => told === shared);
  const ours: number[] = [];
  const bare: number[] = [];
  for (let round = 0; round < rounds; round++) {
    pool = round % 2 === 0 ? "0" : "0-1";
    const before = systemClock.monotonic();
    told = 0;
    // Waited for as the bare calls are: whoever asks again and again takes a processor from the runtime.
    const allTold = new Promise<void>((resolve) => {
      onAllTold = resolve;
    });
    keeper.wake();
    await allTold;
    ours.push(systemClock.monotonic() - before);
    const other = pool === "0" ? "0-1" : "0";
    const then = systemClock.monotonic();
    await Promise.all(ids.map((id) => tell(id, other)));
    bare.push(systemClock.monotonic() - then);
    await Promise.all(ids.map((id) => tell(id, pool)));
  }
  const [moveMs, bareMs] = [quantile(ours, 0.5), quantile(bare, 0.5)];
  return { shared, moveP50Ms: rounded(moveMs), bareP50Ms: rounded(bareMs), moveRatio: rounded(moveMs / bareMs, 2) };
}
