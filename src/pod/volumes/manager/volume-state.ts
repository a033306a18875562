import type { SetUpResult } from "../kinds/kind.ts";

/** Why the last try failed. */
export interface VolumeFailure {
  /** As the event says it. */
  readonly message: string;
  /** The persistent volume is not known yet, so nothing was tried. */
  readonly isUnresolved: boolean;
  readonly isUnattached: boolean;
  readonly nextTryAt: number;
}

/**
 *   waiting -> mounting -> mounted          a failed renewal leaves a volume mounted
 *                 ^  |
 *                 |  v
 *                failed
 */
export type VolumeState =
  | { readonly step: "waiting" }
  | { readonly step: "mounting"; readonly since: number; readonly doing: string }
  | { readonly step: "failed"; readonly failure: VolumeFailure }
  | { readonly step: "mounted"; readonly result: SetUpResult };

const firstRetryMs = 500;
const longestRetryMs = 122_000;

export function retryDelayMs(failures: number): number {
  return Math.min(firstRetryMs * 2 ** Math.max(failures - 1, 0), longestRetryMs);
}
