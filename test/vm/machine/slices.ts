import type { VirtualMachine } from "./machine.ts";

const files = ["memory.max", "memory.min", "cpu.max", "cpu.weight", "pids.max"] as const;

export type SliceFiles = Readonly<Record<(typeof files)[number], string>>;

/** What the kernel enforces on every slice of pods, by the slice's name; containers' scopes are the runtime's. */
export async function readSlices(machine: VirtualMachine): Promise<ReadonlyMap<string, SliceFiles>> {
  const listed = await machine.run(
    "find /sys/fs/cgroup/kubepods.slice -type d -name '*.slice' | sort | while read -r d; do " +
      `echo "$(basename "$d")|${files.map((file) => `$(cat "$d/${file}" 2>&1)`).join("|")}"; done`,
  );
  const lines = listed.split("\n").filter((line) => line !== "");
  return new Map(
    lines.map((line) => {
      const [name = "", ...values] = line.split("|");
      return [name, Object.fromEntries(files.map((file, at) => [file, values[at] ?? ""])) as SliceFiles];
    }),
  );
}

/** Units of pods that systemd still knows, whatever their state. */
export async function podUnits(machine: VirtualMachine): Promise<readonly string[]> {
  const listed = await machine.run(
    "systemctl list-units --all --plain --no-legend 'kubepods*' 'cri-containerd-*' || true",
  );
  return listed.split("\n").flatMap((line) => line.split(/\s+/)[0] || []);
}

/** The name of a pod's slice. */
export function podSlice(uid: string, tier: "guaranteed" | "burstable" | "besteffort"): string {
  const parent = tier === "guaranteed" ? "kubepods" : `kubepods-${tier}`;
  return `${parent}-pod${uid.replaceAll("-", "_")}.slice`;
}
