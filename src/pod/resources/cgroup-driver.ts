import type { ObservedResources } from "../../ground/model/index.ts";
import type { CgroupValues } from "./cgroup-values.ts";

/** `partial`: it is there, but lacks a controller or is missing in one of the trees. */
export type CgroupPresence = "complete" | "partial" | "missing";

/** `exact`: what differs is written. `raise`: only what is lower than it should be; what is higher stays. */
export type HealMode = "exact" | "raise";

/** Who makes and limits cgroups, by their path below the root: we ourselves, or systemd for us. */
export interface CgroupDriver {
  presence(path: string): Promise<CgroupPresence>;
  /** Makes the cgroup and all above it. One that is new may have its values from the start; `write` them all the same. */
  make(path: string, values: CgroupValues): Promise<"made" | "existed">;
  /** Writes what `values` sets, as far as this machine has the controllers for it. */
  write(path: string, values: CgroupValues): Promise<void>;
  /** As `write`, where somebody else may have changed something: reads first, and mostly there is nothing to write. */
  heal(path: string, values: CgroupValues, mode: HealMode): Promise<void>;
  /** In bytes, of all that is below it. */
  memoryUsage(path: string): Promise<bigint>;
  /** What of it the kernel can't take back by dropping copies of files. */
  memoryHeld(path: string): Promise<bigint>;
  /**
   * What the kernel has of CPUs and memory for it, in the units in which runtimes tell it. A weight of cgroup v2 stands
   * for several shares: for those that were meant, where these may be it.
   */
  resources(path: string, meantShares: number): Promise<ObservedResources>;
  /** Names of the cgroups directly below, in any hierarchy; none when the cgroup does not exist. */
  children(path: string): Promise<ReadonlySet<string>>;
  /** Removes the cgroup and what is below it. With processes that stay in it, however that came, it is an error. */
  remove(path: string, processes: LeftProcesses, signal: AbortSignal): Promise<void>;
}

/** What becomes of processes in a cgroup that is to go: `kill` those that stay for longer than a moment, or `leave` them. */
export type LeftProcesses = "kill" | "leave";
