import type { MemoryUsage } from "../../../connections/host/index.ts";
import type { EvictionSignal } from "../../../ground/config/index.ts";
import { type CgroupNaming, kubepodsCgroup } from "../../../ground/model/index.ts";
import type { DiskLayout, Observation, Observations } from "../plan/signals.ts";
import type { DiskReading } from "./disk-signals.ts";
import type { PressureSources } from "./ports.ts";

/** What was seen of the node at one moment. */
export interface Reading {
  readonly observations: Observations;
  /** undefined: nothing is known of the disks. */
  readonly layout: DiskLayout | undefined;
  /** Memory as cgroups count it, for those who set alarms. */
  readonly memory: ReadonlyMap<"memory.available" | "allocatableMemory.available", MemoryUsage>;
}

export interface SignalReaderPorts {
  readonly sources: Pick<PressureSources, "cgroups" | "tasks" | "hugePageBytes">;
  readonly disks: { read(signal: AbortSignal): Promise<DiskReading | undefined> };
  readonly naming: () => CgroupNaming;
}

/** Everything that thresholds can be about, read now. */
export async function readSignals(ports: SignalReaderPorts, signal: AbortSignal): Promise<Reading> {
  const { sources, disks, naming } = ports;
  const disk = await disks.read(signal);
  const observations = new Map<EvictionSignal, Observation>();
  const memory = new Map<"memory.available" | "allocatableMemory.available", MemoryUsage>();
  const note = (name: "memory.available" | "allocatableMemory.available", path: string, keptBytes: number): void => {
    const usage = sources.cgroups.memory(path);
    if (usage?.limitBytes === undefined) return;
    const capacity = usage.limitBytes - keptBytes;
    memory.set(name, usage);
    observations.set(name, { available: Math.max(0, capacity - usage.workingSetBytes), capacity });
  };
  note("memory.available", "/", sources.hugePageBytes());
  if (naming().perQos) note("allocatableMemory.available", kubepodsCgroup(naming()), 0);
  const tasks = sources.tasks();
  if (tasks !== undefined) {
    observations.set("pid.available", { available: tasks.limit - tasks.running, capacity: tasks.limit });
  }
  for (const place of ["nodefs", "imagefs", "containerfs"] as const) {
    const usage = disk?.[place];
    if (usage === undefined) continue;
    const { availableBytes, capacityBytes, inodesFree, inodes, readAt } = usage;
    observations.set(`${place}.available`, {
      available: Number(availableBytes),
      capacity: Number(capacityBytes),
      readAt,
    });
    // File systems that make inodes as they need them have none to run out of.
    if (inodes > 0n) {
      observations.set(`${place}.inodesFree`, { available: Number(inodesFree), capacity: Number(inodes), readAt });
    }
  }
  return { observations, layout: disk?.layout, memory };
}
