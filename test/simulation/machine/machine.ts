import type { HttpRequest, HttpResponse } from "../../../src/connections/kube/transport/http.ts";
import { Dice } from "./dice.ts";
import { Disk } from "./disk.ts";
import { type Life, Timeline } from "./timeline.ts";

export const runtimeSocket = "/run/containerd/containerd.sock";

/** The other end of the agent's connections. */
export interface Neighbours {
  callRuntime(operation: string, request: unknown, call: LocalCall): Promise<unknown>;
  streamRuntime(operation: string, call: LocalCall): AsyncIterable<unknown>;
  /** A call to a plugin, by the socket that it listens on. */
  callPlugin(socketPath: string, operation: string, request: unknown, call: LocalCall): Promise<unknown>;
  streamPlugin(socketPath: string, operation: string, call: LocalCall): AsyncIterable<unknown>;
  /** Whether a plugin listens there, now and whenever that changes; returns how to stop it. */
  watchPlugin(socketPath: string, onChange: (isThere: boolean) => void): () => void;
  askApi(request: HttpRequest, signal: AbortSignal): Promise<HttpResponse>;
  cutApi(): void;
  /** What becomes of a connection to a pod. */
  dial(host: string, port: number): "accepts" | "refuses" | "is silent";
}

/** A call on a unix socket. */
export interface LocalCall {
  readonly signal: AbortSignal | undefined;
  readonly allowedMs: number | undefined;
}

/** How long the disk takes, and when it does not answer at all. */
export interface DiskPace {
  /** Operations take up to so long. */
  slowMs: number;
}

/** One simulated machine: its time, its files, and the chance that rules it. */
export class Machine {
  readonly timeline = new Timeline();
  readonly disk: Disk;
  readonly pace: DiskPace = { slowMs: 0 };
  /** Ids, keys and jitter of everything on the machine. */
  readonly ids: Dice;
  readonly #latency: Dice;
  neighbours: Neighbours | undefined;
  bootId = "";
  /** Something that the simulation can't do was asked for: what it leads to would not be repeatable. */
  readonly escapes: string[] = [];

  constructor(seed: number) {
    this.ids = new Dice(seed, "ids");
    this.#latency = new Dice(seed, "disk latency");
    this.disk = new Disk(() => this.timeline.wallNow(), new Dice(seed, "disk"));
    setUp(this.disk, this);
    this.boot();
  }

  boot(): void {
    this.bootId = uuid(this.ids);
  }

  get life(): Life | undefined {
    return this.timeline.present;
  }

  /** Does it in a moment, unless the process that asked has ended by then. */
  soon<Result>(perform: () => Result): Promise<Result> {
    const { life } = this;
    return new Promise((resolve, reject) => {
      this.timeline.after(this.#diskMs(), life, () => {
        try {
          resolve(perform());
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #diskMs(): number {
    const dice = this.#latency;
    if (this.pace.slowMs > 0 && dice.chance(0.2)) return dice.between(0, this.pace.slowMs);
    return dice.chance(0.02) ? dice.between(1, 20) : dice.between(0.01, 0.2);
  }
}

export function uuid(dice: Dice): string {
  const hex = dice.hex(32);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`;
}

/** Who the agent talks to. */
export function neighbours(): Neighbours {
  const { neighbours: found } = machine();
  if (found === undefined) throw new Error("the simulated machine is alone");
  return found;
}

let present: Machine | undefined;

/** The machine that stand-ins for Node's modules work on: one at a time. */
export function machine(): Machine {
  if (present === undefined) throw new Error("there is no simulated machine");
  return present;
}

export function become(next: Machine): void {
  present = next;
}

/** What every Linux machine has. */
function setUp(disk: Disk, { timeline }: Pick<Machine, "timeline">, processors = 4): void {
  disk.mountFixed("proc", "/proc");
  disk.mountFixed("sysfs", "/sys");
  disk.mountFixed("tmpfs", "/run");
  disk.offerControlsAtTop(disk.mountFixed("cgroup2", "/sys/fs/cgroup"));
  const cpu = (number: number): string =>
    `processor\t: ${number}\nphysical id\t: 0\ncore id\t\t: ${number}\ncpu MHz\t: 3000\n`;
  disk.addFile("/proc/cpuinfo", Array.from({ length: processors }, (_, number) => cpu(number)).join("\n"));
  disk.addFile(
    "/proc/meminfo",
    "MemTotal:       16777216 kB\nMemAvailable:   12000000 kB\nSwapTotal:             0 kB\n",
  );
  disk.addFile("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
  disk.addFile("/proc/self/mountinfo", () => disk.mountTable());
  disk.addFile("/proc/sys/kernel/random/boot_id", () => `${machine().bootId}\n`);
  disk.addFile("/proc/sys/kernel/pid_max", "4194304\n");
  disk.addFile("/proc/sys/kernel/threads-max", "126000\n");
  disk.addFile("/proc/uptime", () => `${(timeline.now / 1000).toFixed(2)} 0.00\n`);
  disk.addFile(
    "/proc/net/route",
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\neth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\n",
  );
  disk.addFile("/sys/devices/system/cpu/online", `0-${processors - 1}\n`);
  disk.addFile("/etc/machine-id", "0123456789abcdef0123456789abcdef\n");
  disk.addFile("/etc/os-release", 'PRETTY_NAME="Simulated Linux"\n');
  disk.addFile("/etc/resolv.conf", "nameserver 10.0.0.2\nsearch example.org\n");
  disk.addFile("/etc/hosts", "127.0.0.1 localhost\n");
  for (const directory of [
    "/var/lib/kubelet",
    "/var/log/pods",
    "/var/log/containers",
    "/etc/kubernetes/manifests",
    "/tmp",
  ]) {
    disk.makeDirectories(directory);
  }
  disk.writeBack();
}
