import { readFile } from "node:fs/promises";
import { arch, release } from "node:os";
import { table } from "../../ground/base/index.ts";

/** What the node reports of the machine it runs on. */
export interface Machine {
  readonly cpus: CpuCounts;
  readonly memoryBytes: number;
  readonly swapBytes: number;
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osImage: string;
  /** As Go spells it (`amd64`), because Kubernetes does. */
  readonly architecture: string;
}

export interface CpuCounts {
  readonly logical: number;
  readonly physicalCores: number;
  readonly sockets: number;
}

/** `root` lets tests read a made-up machine. */
export async function readMachine(root = "/"): Promise<Machine> {
  const [cpuInfo, memInfo, machineId, systemUuid, bootId, osImage] = await Promise.all([
    readFile(`${root}/proc/cpuinfo`, "utf8"),
    readFile(`${root}/proc/meminfo`, "utf8"),
    firstReadable(root, ["/etc/machine-id", "/var/lib/dbus/machine-id"]),
    firstReadable(root, systemUuidFiles),
    firstReadable(root, ["/proc/sys/kernel/random/boot_id"]),
    readOsImage(root),
  ]);
  return {
    cpus: countCpus(cpuInfo),
    memoryBytes: kibibytes(memInfo, "MemTotal") * 1024,
    swapBytes: kibibytes(memInfo, "SwapTotal") * 1024,
    machineId,
    systemUuid,
    bootId,
    kernelVersion: release(),
    osImage,
    architecture: goArchitectures[arch()] ?? arch(),
  };
}

const systemUuidFiles = [
  "/sys/class/dmi/id/product_uuid",
  "/proc/device-tree/system-id",
  "/proc/device-tree/vm,uuid",
  "/etc/machine-id",
];

const goArchitectures: Readonly<Record<string, string>> = table({ x64: "amd64", ia32: "386", ppc64: "ppc64le" });

async function firstReadable(root: string, files: readonly string[]): Promise<string> {
  for (const file of files) {
    try {
      return (await readFile(`${root}${file}`, "utf8")).replaceAll("\0", "").trim();
    } catch {
      // The next place may have it; a machine without any reports an empty one, as upstream does.
    }
  }
  return "";
}

async function readOsImage(root: string): Promise<string> {
  const text = await firstReadable(root, ["/etc/os-release", "/usr/lib/os-release"]);
  if (text === "") return "Unknown";
  const match = /^PRETTY_NAME=(["']?)(.*)\1$/m.exec(text);
  return match?.[2] ?? "Linux";
}

/** /proc/cpuinfo of x86 names socket and core of each processor; elsewhere every processor counts as a core. */
export function countCpus(cpuInfo: string): CpuCounts {
  const blocks = cpuInfo.split(/\n\s*\n/).filter((block) => /^processor\s*:/m.test(block));
  const sockets = new Set<string>();
  const cores = new Set<string>();
  for (const block of blocks) {
    const socket = /^physical id\s*:\s*(\d+)/m.exec(block)?.[1] ?? "0";
    const core = /^core id\s*:\s*(\d+)/m.exec(block)?.[1] ?? `processor ${cores.size}`;
    sockets.add(socket);
    cores.add(`${socket}/${core}`);
  }
  return { logical: blocks.length, physicalCores: cores.size, sockets: sockets.size };
}

function kibibytes(memInfo: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(memInfo)?.[1] ?? 0);
}

/** How many processes and threads the kernel allows at once. */
export async function readPidLimit(root = "/"): Promise<number> {
  const limits = await Promise.all(
    ["pid_max", "threads-max"].map(async (file) => Number(await readFile(`${root}/proc/sys/kernel/${file}`, "utf8"))),
  );
  return Math.min(...limits);
}

/** The swap devices in use; none when the kernel has no swap at all. */
export async function readSwaps(root = "/"): Promise<readonly string[]> {
  let text: string;
  try {
    text = await readFile(`${root}/proc/swaps`, "utf8");
  } catch {
    return [];
  }
  const [, ...lines] = text.trim().split("\n");
  return lines.map((line) => line.split(/\s+/)[0] ?? "").filter((device) => device !== "");
}
