import type { EvictionSignal } from "../../../ground/config/index.ts";
import { formatQuantity, type QuantityFormat } from "../../../ground/model/index.ts";

export type PressureCondition = "MemoryPressure" | "DiskPressure" | "PIDPressure";

/** What is scarce, in the words of messages to users. */
export type ScarceResource = "memory" | "ephemeral-storage" | "inodes" | "pids";

interface SignalFacts {
  readonly condition: PressureCondition;
  readonly resource: ScarceResource;
  readonly format: QuantityFormat;
  /** More than this nobody takes in a second: how soon it can get scarce, and so how soon to look again. */
  readonly mostPerSecond: number;
}

const gibibyte = 2 ** 30;
const memory: SignalFacts = {
  condition: "MemoryPressure",
  resource: "memory",
  format: "binary",
  mostPerSecond: gibibyte,
};
const disk: SignalFacts = {
  condition: "DiskPressure",
  resource: "ephemeral-storage",
  format: "binary",
  mostPerSecond: gibibyte,
};
const inodes: SignalFacts = {
  condition: "DiskPressure",
  resource: "inodes",
  format: "decimal",
  mostPerSecond: 100_000,
};

export const signalFacts: Readonly<Record<EvictionSignal, SignalFacts>> = {
  "memory.available": memory,
  "allocatableMemory.available": memory,
  "nodefs.available": disk,
  "nodefs.inodesFree": inodes,
  "imagefs.available": disk,
  "imagefs.inodesFree": inodes,
  "containerfs.available": disk,
  "containerfs.inodesFree": inodes,
  "pid.available": { condition: "PIDPressure", resource: "pids", format: "decimal", mostPerSecond: 20_000 },
};

/** How much of something there is, and how much there could be. */
export interface Observation {
  readonly available: number;
  readonly capacity: number;
  /** When (monotonic), where it may be a while ago: a disk can take long to answer. */
  readonly readAt?: number;
}

/** What could be read of the node at one moment. */
export type Observations = ReadonlyMap<EvictionSignal, Observation>;

/** Which of the node's own files, images and what containers write share a disk. */
export type DiskLayout =
  | "one disk for all"
  /** Images and what containers write are on another disk than the node's files. */
  | "images apart"
  /** Images are on another disk than what containers write. */
  | "containers apart";

const nano = 1_000_000_000n;

export function amountText(amount: number, format: QuantityFormat): string {
  return formatQuantity(BigInt(Math.trunc(amount)) * nano, format);
}
