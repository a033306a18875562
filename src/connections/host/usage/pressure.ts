import type { Pressure, Pressures } from "./cgroup-usage.ts";
import { readKernelFile } from "./kernel-file.ts";

/** What the whole machine loses; undefined where the kernel does not measure it. */
export function readPressureOfMachine(root: string): Pressures | undefined {
  return readPressures((kind) => `${root}/proc/pressure/${kind}`);
}

export function readPressures(fileOf: (kind: "cpu" | "memory" | "io") => string): Pressures | undefined {
  const read = (kind: "cpu" | "memory" | "io"): Pressure | undefined => parsePressure(readKernelFile(fileOf(kind)));
  const [cpu, memory, io] = [read("cpu"), read("memory"), read("io")];
  return cpu === undefined && memory === undefined && io === undefined ? undefined : { cpu, memory, io };
}

/** `some avg10=0.00 avg60=0.00 avg300=0.00 total=0`, then the same for `full`, which old kernels lack for the CPU. */
export function parsePressure(text: string | undefined): Pressure | undefined {
  const share = (kind: string) => {
    const [, avg10, avg60, avg300, total] =
      new RegExp(`^${kind} avg10=([\\d.]+) avg60=([\\d.]+) avg300=([\\d.]+) total=(\\d+)`, "m").exec(text ?? "") ?? [];
    if (total === undefined) return undefined;
    return {
      avg10: Number(avg10),
      avg60: Number(avg60),
      avg300: Number(avg300),
      totalMicroseconds: Number(total),
    };
  };
  const some = share("some");
  if (some === undefined) return undefined;
  return { some, full: share("full") ?? { avg10: 0, avg60: 0, avg300: 0, totalMicroseconds: 0 } };
}
