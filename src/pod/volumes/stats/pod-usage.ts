import type { Volume } from "../../../ground/model/index.ts";
import type { VolumeUsage } from "./disk-usage.ts";

/** One volume of a pod as the stats API and eviction see it. */
export interface MeasuredVolume {
  readonly name: string;
  readonly usage: VolumeUsage;
  /** The claim that it came through. */
  readonly claim: { readonly namespace: string; readonly name: string } | undefined;
  /** It takes the node's own disk, and counts against what the pod may use of that. */
  readonly isLocalEphemeral: boolean;
}

export function isLocalEphemeral({ emptyDir, configMap, gitRepo }: Volume): boolean {
  return (emptyDir !== undefined && !emptyDir.medium) || configMap !== undefined || gitRepo !== undefined;
}
