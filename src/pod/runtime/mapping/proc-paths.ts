import { access, readFile } from "node:fs/promises";

const masked = [
  "/proc/asound",
  "/proc/acpi",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
const readOnly = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

export interface ProcPaths {
  readonly masked: readonly string[];
  readonly readOnly: readonly string[];
}

/** What of /proc and /sys a container may not see or write. Runtimes mask nothing unless told. */
export function procPaths(procMount: string | undefined, thermalThrottlePaths: readonly string[]): ProcPaths {
  if (procMount === "Unmasked") return { masked: [], readOnly: [] };
  return { masked: [...masked, ...thermalThrottlePaths], readOnly };
}

const cpuDir = "/sys/devices/system/cpu";

/** The thermal_throttle directories of this machine's processors; `root` lets tests read a made-up machine. */
export async function readThermalThrottlePaths(root = ""): Promise<readonly string[]> {
  let possible: string;
  try {
    possible = await readFile(`${root}${cpuDir}/possible`, "utf8");
  } catch {
    return [];
  }
  const paths: string[] = [];
  for (const cpu of expandCpuList(possible)) {
    const path = `${cpuDir}/cpu${cpu}/thermal_throttle`;
    try {
      await access(`${root}${path}`);
      paths.push(path);
    } catch {
      // Most virtual machines have none.
    }
  }
  return paths;
}

function expandCpuList(text: string): readonly number[] {
  return text
    .trim()
    .split(",")
    .filter((range) => /^\d+(-\d+)?$/.test(range))
    .flatMap((range) => {
      const [first = 0, last = first] = range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
}
