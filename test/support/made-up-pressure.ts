import type { FileSystemUsage, MemoryUsage } from "../../src/connections/host/index.ts";
import type { PressureSources } from "../../src/node/eviction/index.ts";

const gibibyte = 2 ** 30;

/** A machine with plenty of everything, until a test says otherwise. */
export class MadeUpPressure implements PressureSources {
  /** Working sets by cgroup; those that are not here do not exist. */
  readonly workingSets = new Map<string, number>([["/", gibibyte]]);
  readonly limits = new Map<string, number>([["/", 16 * gibibyte]]);
  readonly taskCounts = new Map<string, number>();
  runningTasks = 500;
  /** By path; others are on one disk with plenty of room. */
  readonly fileSystems = new Map<string, Partial<FileSystemUsage>>();
  readonly devices = new Map<string, bigint>();
  readonly alarms = new Set<() => void>();

  readonly cgroups = {
    exists: (path: string): boolean => this.workingSets.has(path),
    children: (path: string): readonly string[] =>
      [...this.workingSets.keys()].flatMap((other) =>
        other.startsWith(`${path}/`) ? [other.slice(path.length + 1)] : [],
      ),
    memory: (path: string): MemoryUsage | undefined => {
      const workingSetBytes = this.workingSets.get(path);
      return workingSetBytes === undefined ? undefined : memoryUsage(workingSetBytes, this.limits.get(path));
    },
    tasks: (path: string): number | undefined => this.taskCounts.get(path),
  };

  readonly hugePageBytes = (): number => 0;

  readonly tasks = () => ({ running: this.runningTasks, limit: 32_768 });

  readonly fileSystem = async (path: string): Promise<FileSystemUsage> => ({
    capacityBytes: 100n * BigInt(gibibyte),
    availableBytes: 80n * BigInt(gibibyte),
    usedBytes: 20n * BigInt(gibibyte),
    inodes: 1_000_000n,
    inodesFree: 900_000n,
    inodesUsed: 100_000n,
    ...this.fileSystems.get(path),
  });

  readonly device = async (path: string): Promise<bigint> => this.devices.get(path) ?? 1n;

  readonly memoryAlarm = async (_path: string, tell: () => void) => {
    this.alarms.add(tell);
    return { isSetByUsage: true, set: async () => {}, [Symbol.dispose]: () => void this.alarms.delete(tell) };
  };
}

function memoryUsage(workingSetBytes: number, limitBytes: number | undefined): MemoryUsage {
  return {
    usageBytes: workingSetBytes,
    workingSetBytes,
    rssBytes: workingSetBytes,
    cacheBytes: 0,
    mappedFileBytes: 0,
    activeFileBytes: 0,
    inactiveFileBytes: 0,
    pageFaults: 0,
    majorPageFaults: 0,
    ownPageFaults: undefined,
    kernelBytes: undefined,
    swapBytes: 0,
    limitBytes,
    swapLimitBytes: undefined,
  };
}
