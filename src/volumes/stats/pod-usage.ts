import { type IdentifiedPod, parseQuantity, type Volume, wholeUnits } from "../../model/index.ts";
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

/** Scratch volumes that hold more than their limit, each with the words of the eviction. */
export function overLimit(
  pod: IdentifiedPod,
  measured: readonly MeasuredVolume[],
): readonly { readonly volume: string; readonly message: string }[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, emptyDir }) => {
    const limit = emptyDir?.sizeLimit;
    const used = measured.find((volume) => volume.name === name)?.usage.usedBytes;
    if (limit === undefined || used === undefined) return [];
    const bytes = wholeUnits(parseQuantity(limit));
    if (bytes <= 0n || used <= bytes) return [];
    return [{ volume: name, message: `Usage of EmptyDir volume "${name}" exceeds the limit "${limit}". ` }];
  });
}
