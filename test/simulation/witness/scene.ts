import type { Simulation } from "../simulation.ts";
import type { Ailments } from "./ailments.ts";
import type { SeenPods } from "./seen-pods.ts";

/** What every rule looks at, and whom it tells. */
export interface Scene {
  readonly simulation: Simulation;
  readonly pods: SeenPods;
  readonly ailments: Ailments;
  /** Something happened that must never happen. */
  readonly fail: (what: string) => void;
}
