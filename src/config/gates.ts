import type { GateStage } from "./gate-spec.ts";
import type { GateName } from "./gate-table.ts";

/** The feature gates as they stand once flags and files have been read. */
export interface FeatureGates {
  enabled(name: GateName): boolean;
  /** Every gate of v1.34, also those of other components, for metrics and for people. */
  readonly all: readonly KnownGate[];
}

export interface KnownGate {
  readonly name: string;
  readonly stage: GateStage;
  readonly enabled: boolean;
  readonly default: boolean;
}
