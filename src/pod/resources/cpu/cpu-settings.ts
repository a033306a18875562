import type { CpuSet } from "../../../ground/base/index.ts";

/** What the options of the static policy ask for. */
export interface CpuOptions {
  /** full-pcpus-only: containers get whole cores, or are refused. */
  readonly wholeCoresOnly: boolean;
  /** distribute-cpus-across-numa */
  readonly acrossNodes: boolean;
  /** align-by-socket */
  readonly bySocket: boolean;
  /** distribute-cpus-across-cores */
  readonly acrossCores: boolean;
  /** strict-cpu-reservation: pods that share CPUs stay off the reserved ones. */
  readonly strictReservation: boolean;
  /** prefer-align-cpus-by-uncorecache */
  readonly byCache: boolean;
}

export interface CpuSettings {
  readonly options: CpuOptions;
  /** Never given to one container alone. */
  readonly reserved: CpuSet;
}
