import { join } from "node:path";
import type { ContainerStats, ImageService, RuntimeService } from "../../src/connections/cri/index.ts";
import { cgroupReader } from "../../src/connections/host/index.ts";
import { type Clock, TaskScope } from "../../src/ground/base/index.ts";
import { type ObservedPod, type PodUid, podCgroup } from "../../src/ground/model/index.ts";
import { NodeStatistics } from "../../src/node/server/stats/node-stats.ts";
import type { StatsPorts, StatsSettings, VolumeReading } from "../../src/node/server/stats/ports.ts";
import { FakeClock } from "./fake-clock.ts";
import { MadeUpFiles } from "./made-up-files.ts";

const naming = { driver: "systemd", root: "/", perQos: true } as const;
const pressure =
  "some avg10=1.00 avg60=0.50 avg300=0.25 total=3000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n";

/** A machine of files in a directory, with pods on it that use what the test says. Its cgroups are of version 2. */
export class MadeUpNode implements AsyncDisposable {
  readonly clock: FakeClock;
  readonly files: MadeUpFiles;
  readonly statistics: NodeStatistics;
  readonly volumes = new Map<string, readonly VolumeReading[]>();
  /** The runtime tells the image of sandboxes only then. */
  imageKnown: Promise<void> = Promise.resolve();
  /** Pods whose volumes can't be measured. */
  readonly brokenVolumes = new Set<string>();
  readonly layers = new Map<string, bigint>();
  /** Calls that reached the runtime. */
  calls = 0;
  /** How often the volumes of some pod were measured. */
  measured = 0;
  readonly #pods = new Map<string, ObservedPod>();
  readonly #scope = new TaskScope();
  #nextPid = 100;

  constructor(settings: Partial<StatsSettings> = {}) {
    this.clock = new FakeClock();
    this.files = new MadeUpFiles({
      "proc/meminfo": "MemTotal: 4000000 kB\nMemAvailable: 3000000 kB\nSwapTotal: 1000 kB\nSwapFree: 400 kB\n",
      "proc/stat": "btime 1700000000\n",
      "proc/loadavg": "0.00 0.01 0.05 2/345 6789\n",
      "proc/sys/kernel/pid_max": "32768\n",
      "proc/sys/kernel/threads-max": "100000\n",
      "proc/1/net/dev": netDev(5000, 7000),
      "logs/.keep": "",
      "pods/.keep": "",
    });
    this.use("/", { cpuSeconds: 1000, memoryBytes: 2_000_000_000, inactiveFileBytes: 500_000_000 });
    this.use("/kubepods.slice", { cpuSeconds: 100, memoryBytes: 1_000_000_000, inactiveFileBytes: 0 });
    const { root } = this.files;
    this.statistics = new NodeStatistics(this.#scope, {
      clock: this.clock as Clock,
      random: () => 0,
      machine: {
        cpus: { logical: 4, physicalCores: 2, sockets: 1 },
        memoryBytes: 4_096_000_000,
        swapBytes: 1_024_000,
        machineId: "machine-1",
        systemUuid: "system-1",
        bootId: "boot-1",
        kernelVersion: "6.1.0",
        osImage: "Some OS",
        architecture: "amd64",
      },
      sandboxImage: async () => {
        await this.imageKnown;
        return "pause:3";
      },
      cgroups: cgroupReader({ version: 2, mountPoint: "/cg", controllers: [] }, root),
      naming,
      runtime: this.#runtime(),
      images: this.#images(),
      observed: () => this.#pods.values(),
      measureVolumes: async (uid) => {
        this.measured++;
        if (this.brokenVolumes.has(uid)) throw new Error("the volume does not answer");
        return this.volumes.get(uid) ?? [];
      },
      settings: {
        nodeName: "made-up",
        rootDir: root,
        podsDir: join(root, "pods"),
        podLogsDir: join(root, "logs"),
        startedAt: 1_700_000_100_000,
        systemCgroups: { kubelet: "/system.slice/nodelet.service", runtime: "/system.slice/gone", misc: undefined },
        pressure: true,
        volumePeriodMs: 60_000,
        hostRoot: root,
        ...settings,
      },
    } satisfies StatsPorts);
    this.use("/system.slice/nodelet.service", { cpuSeconds: 3, memoryBytes: 80_000_000, inactiveFileBytes: 0 });
  }

  /** What a cgroup has used by now. */
  use(path: string, { cpuSeconds, memoryBytes, inactiveFileBytes, limitBytes }: Use): void {
    const at = `cg${path === "/" ? "" : path}`;
    const usec = Math.round(cpuSeconds * 1e6);
    const anon = memoryBytes - inactiveFileBytes;
    const stat = `anon ${anon}\nfile ${inactiveFileBytes}\ninactive_file ${inactiveFileBytes}\npgfault 9\npgmajfault 1\n`;
    this.files.write({
      [`${at}/cpu.stat`]: `usage_usec ${usec}\nuser_usec ${usec}\nsystem_usec 0\n`,
      [`${at}/memory.stat`]: stat,
      ...(path === "/"
        ? { "proc/pressure/cpu": pressure, "proc/pressure/memory": pressure, "proc/pressure/io": pressure }
        : {
            [`${at}/memory.current`]: `${memoryBytes}\n`,
            [`${at}/memory.max`]: limitBytes === undefined ? "max\n" : `${limitBytes}\n`,
            [`${at}/memory.swap.current`]: "4096\n",
            [`${at}/memory.swap.max`]: "8192\n",
            [`${at}/cpu.max`]: "50000 100000\n",
            [`${at}/cpu.weight`]: "4\n",
            [`${at}/cpu.pressure`]: pressure,
            [`${at}/memory.pressure`]: pressure,
            [`${at}/io.pressure`]: pressure,
            [`${at}/memory.events`]: "max 1\noom_kill 2\n",
            [`${at}/io.stat`]: "8:0 rbytes=4096 wbytes=512 rios=4 wios=1 dbytes=0 dios=0\n",
            [`${at}/pids.current`]: "3\n",
            [`${at}/pids.max`]: "100\n",
          }),
    });
  }

  /** A pod that runs, with a cgroup for itself, its sandbox and each of its containers. */
  addPod(name: string, containers: readonly string[] = ["main"]): MadeUpPod {
    const uid = `uid-${name}` as PodUid;
    const pod = podCgroup(naming, "BestEffort", uid);
    const sandboxPath = `${pod}/cri-containerd-sandbox-${name}.scope`;
    const paths = new Map(containers.map((each) => [each, `${pod}/cri-containerd-${name}-${each}.scope`]));
    for (const path of [pod, sandboxPath, ...paths.values()]) {
      this.use(path, {
        cpuSeconds: 10,
        memoryBytes: 50_000_000,
        inactiveFileBytes: 10_000_000,
        limitBytes: 90_000_000,
      });
      const pid = this.#nextPid++;
      this.files.write({ [`cg${path}/cgroup.procs`]: `${pid}\n`, [`proc/${pid}/net/dev`]: netDev(100, 200) });
    }
    for (const container of containers) {
      this.files.write({ [`logs/default_${name}_${uid}/${container}/0.log`]: "x".repeat(5_000) });
    }
    this.#pods.set(name, observedPod(uid, name, containers));
    return { uid, podPath: pod, pathOf: (container) => paths.get(container) ?? "" };
  }

  removePod(name: string): void {
    this.#pods.delete(name);
  }

  #runtime(): Pick<RuntimeService, "listContainerStats"> {
    return {
      listContainerStats: async () => {
        this.calls++;
        const stats = [...this.#pods.values()].flatMap(({ containers }) =>
          containers.map(({ id }) => containerStats(id, this.layers.get(id) ?? 4096n, this.clock.now())),
        );
        return { stats };
      },
    };
  }

  #images(): Pick<ImageService, "imageFsInfo"> {
    return {
      imageFsInfo: async () => {
        this.calls++;
        const images = { ...usage(123_456n, 78n), fsId: { mountpoint: this.files.root } };
        return { imageFilesystems: [images], containerFilesystems: [] };
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
    this.files[Symbol.dispose]();
  }
}

interface Use {
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
  readonly inactiveFileBytes: number;
  readonly limitBytes?: number;
}

export interface MadeUpPod {
  readonly uid: PodUid;
  readonly podPath: string;
  pathOf(container: string): string;
}

function netDev(received: number, sent: number): string {
  return `Inter-| Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n  eth0: ${received} 2 0 0 0 0 0 0 ${sent} 3 0 0 0 0 0 0\n`;
}

function usage(bytes: bigint, inodes: bigint) {
  return { timestamp: 1n, fsId: undefined, usedBytes: { value: bytes }, inodesUsed: { value: inodes } };
}

function containerStats(id: string, layer: bigint, now: number): ContainerStats {
  return {
    attributes: { id, metadata: undefined, labels: {}, annotations: {} },
    cpu: {
      timestamp: BigInt(now) * 1_000_000n,
      usageCoreNanoSeconds: { value: 1_000_000_000n },
      usageNanoCores: undefined,
      psi: undefined,
    },
    memory: {
      timestamp: BigInt(now) * 1_000_000n,
      workingSetBytes: { value: 1_000_000n },
      availableBytes: undefined,
      usageBytes: { value: 2_000_000n },
      rssBytes: undefined,
      pageFaults: undefined,
      majorPageFaults: undefined,
      psi: undefined,
    },
    writableLayer: usage(layer, 3n),
    swap: undefined,
    io: undefined,
  };
}

function observedPod(uid: PodUid, name: string, containers: readonly string[]): ObservedPod {
  const sandbox = `sandbox-${name}` as ObservedPod["sandboxes"][number]["id"];
  return {
    uid,
    name,
    namespace: "default",
    observedAt: 1,
    ips: ["10.0.0.2"],
    sandboxes: [
      {
        id: sandbox,
        attempt: 0,
        state: "ready",
        createdAt: 1_700_000_200_000,
        network: "pod",
        ip: "10.0.0.2",
        additionalIps: [],
        runtimeHandler: "",
      },
    ],
    containers: containers.map((container) => ({
      id: `${name}-${container}` as ObservedPod["containers"][number]["id"],
      sandboxId: sandbox,
      name: container,
      attempt: 0,
      state: "running",
      createdAt: 1_700_000_200_000,
      startedAt: 1_700_000_201_500,
      finishedAt: 0,
      exitCode: 0,
      reason: "",
      message: "",
      image: "busybox:1",
      imageRef: "sha256:1",
      imageId: "sha256:1",
      logPath: "",
      annotations: {
        hash: "",
        restartCount: 0,
        terminationMessagePath: "",
        terminationMessagePolicy: "",
        deletionGraceSeconds: undefined,
        terminationGraceSeconds: undefined,
        preStop: undefined,
        ports: undefined,
      },
      mounts: [],
      resources: undefined,
      user: undefined,
    })),
  };
}
