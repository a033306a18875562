import { readKernelFile, readKernelNumber } from "./kernel-file.ts";

export interface MachineMemory {
  readonly totalBytes: number;
  readonly availableBytes: number;
  readonly swapTotalBytes: number;
  readonly swapUsedBytes: number;
  /** Set aside for huge pages of any size, used or not. */
  readonly hugePageBytes: number;
}

/** undefined: it can't be read just now, as when memory or descriptors run out. Not zero: nobody has that little. */
export function readMemoryOfMachine(root = ""): MachineMemory | undefined {
  const text = readKernelFile(`${root}/proc/meminfo`) ?? "";
  const bytes = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  const totalBytes = bytes("MemTotal");
  if (totalBytes === 0) return undefined;
  const swapTotalBytes = bytes("SwapTotal");
  return {
    totalBytes,
    availableBytes: bytes("MemAvailable"),
    swapTotalBytes,
    swapUsedBytes: swapTotalBytes - bytes("SwapFree"),
    hugePageBytes: bytes("Hugetlb"),
  };
}

/** When the machine was started, in milliseconds since 1970. */
export function readBootTime(root = ""): number {
  return Number(/^btime (\d+)/m.exec(readKernelFile(`${root}/proc/stat`) ?? "")?.[1] ?? 0) * 1000;
}

/** How many processes and threads there are. */
export function readTaskCount(root = ""): number | undefined {
  const count = /^\S+ \S+ \S+ \d+\/(\d+) /.exec(readKernelFile(`${root}/proc/loadavg`) ?? "")?.[1];
  return count === undefined ? undefined : Number(count);
}

/** How many processes and threads there are, and can be; both may change at any time. */
export function readTasks(root = ""): { readonly running: number; readonly limit: number } | undefined {
  const running = readTaskCount(root);
  const limits = ["pid_max", "threads-max"].map((name) => readKernelNumber(`${root}/proc/sys/kernel/${name}`));
  const limit = Math.min(...limits.map((each) => each ?? Number.POSITIVE_INFINITY));
  return running === undefined || !Number.isFinite(limit) ? undefined : { running, limit };
}

export interface InterfaceUsage {
  readonly name: string;
  readonly rxBytes: number;
  readonly rxPackets: number;
  readonly rxErrors: number;
  readonly rxDropped: number;
  readonly txBytes: number;
  readonly txPackets: number;
  readonly txErrors: number;
  readonly txDropped: number;
}

// Ends of pods' own wires, and what never leaves the machine, would be counted twice.
const uncounted = /^(lo|veth|docker|nerdctl)/;

/** The network interfaces as the process sees them. */
export function readNetworkOf(pid: number, root = ""): readonly InterfaceUsage[] {
  const text = readKernelFile(`${root}/proc/${pid}/net/dev`) ?? "";
  return text.split("\n").flatMap((line) => {
    const [, name, rest] = /^\s*([^\s:]+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined || rest === undefined || uncounted.test(name)) return [];
    const values = rest.trim().split(/\s+/).map(Number);
    const at = (index: number): number => values[index] ?? 0;
    return [
      {
        name,
        rxBytes: at(0),
        rxPackets: at(1),
        rxErrors: at(2),
        rxDropped: at(3),
        txBytes: at(8),
        txPackets: at(9),
        txErrors: at(10),
        txDropped: at(11),
      },
    ];
  });
}

/**
 * The cgroup of a process, where one path says it: in version 1 every controller may have another, and only when
 * those that count agree there is one.
 */
export function readCgroupOf(pid: number | "self", root = ""): string | undefined {
  const text = readKernelFile(`${root}/proc/${pid}/cgroup`) ?? "";
  const of = (controller: string): string | undefined =>
    new RegExp(`^\\d+:(?:[^:]*,)?${controller}(?:,[^:]*)?:(.*)$`, "m").exec(text)?.[1];
  const memory = of("memory");
  if (memory === undefined) return /^0::(.*)$/m.exec(text)?.[1];
  return memory === of("cpu") ? memory : undefined;
}
