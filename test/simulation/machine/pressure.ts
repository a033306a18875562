import type { FileSystemUsage, MemoryUsage } from "../../../src/connections/host/index.ts";
import type { PressureSources } from "../../../src/node/eviction/index.ts";
import { Dice } from "./dice.ts";
import type { Machine } from "./machine.ts";
import type { Life } from "./timeline.ts";

export const mebibyte = 2 ** 20;
const capacityBytes = 16 * 1024 * mebibyte;
const ofTheSystemBytes = 1024 * mebibyte;
const diskBytes = 100 * 1024 * mebibyte;

/** What the agent's configuration asks for: less is too little, at once or after a while. */
export const wantedMemory = { atOnce: 100 * mebibyte, afterAWhile: 300 * mebibyte, whileMs: 30_000 } as const;

/** A container that runs, and the cgroup of its pod. */
export interface Eater {
  readonly container: string;
  readonly cgroup: string;
}

/** What the machine has of memory and disk, and who takes it: containers as they run, and others as they like. */
export class Pressure implements PressureSources {
  /** Taken by whoever is no pod. */
  othersBytes = 0;
  isDiskShort = false;
  /** Who runs, told by the runtime. */
  eaters: () => readonly Eater[] = () => [];
  /** The agent looks at what the machine has. */
  onLook: () => void = () => {};
  readonly #machine: Machine;
  readonly #seed: number;
  readonly #dice: Dice;
  readonly #appetites = new Map<string, number>();
  readonly #alarms = new Set<{ readonly life: Life | undefined; readonly tell: () => void }>();

  constructor(machine: Machine, seed: number) {
    this.#machine = machine;
    this.#seed = seed;
    this.#dice = new Dice(seed, "pressure");
  }

  get availableBytes(): number {
    return capacityBytes - ofTheSystemBytes - this.othersBytes - this.#bytesOf("");
  }

  /** Others take all but so much. */
  takeAllBut(bytes: number): void {
    this.othersBytes = 0;
    this.othersBytes = this.availableBytes - bytes;
    for (const { life, tell } of this.#alarms) {
      // The kernel tells mostly.
      if (this.#dice.chance(0.8)) this.#machine.timeline.after(this.#dice.between(1, 50), life, tell);
    }
  }

  /** What the containers of a cgroup, or below it, hold. */
  #bytesOf(cgroup: string): number {
    let bytes = 0;
    for (const eater of this.eaters()) if (eater.cgroup.startsWith(cgroup)) bytes += this.appetiteOf(eater.container);
    return bytes;
  }

  /** Each container holds as much from its start to its end; some more than they asked for. */
  appetiteOf(container: string): number {
    let bytes = this.#appetites.get(container);
    if (bytes === undefined) {
      bytes = new Dice(this.#seed, container).pick([4, 8, 14, 40, 90, 200]) * mebibyte;
      this.#appetites.set(container, bytes);
    }
    return bytes;
  }

  readonly cgroups: PressureSources["cgroups"] = {
    exists: (path) => this.#machine.disk.exists(`/sys/fs/cgroup${path}`),
    children: () => [],
    memory: (path) => {
      if (path === "/") {
        this.onLook();
        return memoryUsage(capacityBytes - this.availableBytes, capacityBytes);
      }
      return this.cgroups.exists(path) ? memoryUsage(this.#bytesOf(path), undefined) : undefined;
    },
    tasks: () => undefined,
  };

  readonly hugePageBytes = (): number => 0;

  readonly tasks = () => ({ running: 500, limit: 32_768 });

  readonly fileSystem = (): Promise<FileSystemUsage> =>
    this.#machine.soon(() => {
      const { isFull } = this.#machine.disk;
      const availableBytes = BigInt(isFull ? 0 : this.isDiskShort ? diskBytes / 50 : diskBytes * 0.8);
      return {
        ...{ capacityBytes: BigInt(diskBytes), availableBytes, usedBytes: BigInt(diskBytes) - availableBytes },
        ...{ inodes: 1_000_000n, inodesFree: 900_000n, inodesUsed: 100_000n },
      };
    });

  readonly device = (): Promise<bigint> => this.#machine.soon(() => 1n);

  readonly memoryAlarm: PressureSources["memoryAlarm"] = async (_path, tell) => {
    const alarm = { life: this.#machine.life, tell };
    this.#alarms.add(alarm);
    return { isSetByUsage: true, set: async () => {}, [Symbol.dispose]: () => void this.#alarms.delete(alarm) };
  };

  end(life: Life): void {
    for (const alarm of this.#alarms) if (alarm.life === life) this.#alarms.delete(alarm);
  }
}

function memoryUsage(bytes: number, limitBytes: number | undefined): MemoryUsage {
  return {
    ...{ usageBytes: bytes, workingSetBytes: bytes, rssBytes: bytes, limitBytes },
    ...{ cacheBytes: 0, mappedFileBytes: 0, activeFileBytes: 0, inactiveFileBytes: 0, swapBytes: 0 },
    ...{ pageFaults: 0, majorPageFaults: 0, ownPageFaults: undefined, kernelBytes: undefined },
    swapLimitBytes: undefined,
  };
}
