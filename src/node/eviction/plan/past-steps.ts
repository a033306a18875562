import { type PodUid, uidOf } from "../../../ground/model/index.ts";
import type { Deeds, EvictionStep } from "./planner.ts";
import { isAboutDisk, type Look } from "./thresholds-met.ts";

/** What was done so far, once the step is under way. */
export function deedsAfter(deeds: Deeds, step: EvictionStep, now: number): Deeds {
  switch (step.type) {
    case "rest":
    case "wait":
    case "stuck":
      return deeds;
    case "reclaim":
      return { ...deeds, reclaimingSince: now };
    case "hasten": {
      const victims = new Map(deeds.victims);
      for (const pod of step.pods) victims.set(uidOf(pod), { at: now, grace: step.grace });
      return { ...deeds, victims };
    }
    case "evict": {
      const victims = new Map(deeds.victims);
      victims.set(uidOf(step.victim.pod), { at: now, grace: step.grace });
      const lastDiskVictimAt = isAboutDisk(step.threshold) ? now : deeds.lastDiskVictimAt;
      return { ...deeds, victims, lastVictimAt: now, lastDiskVictimAt };
    }
  }
}

export function reclaimed(deeds: Deeds, now: number): Deeds {
  return { ...deeds, reclaimingSince: undefined, lastReclaimAt: now };
}

/**
 * Once no disk is too full and all victims are gone, what they had there has been seen to go, or was not needed. One that
 * is still here may fill it again.
 */
export function deedsUnder(deeds: Deeds, { acting }: Pick<Look, "acting">, isHere: (uid: PodUid) => boolean): Deeds {
  if (deeds.lastDiskVictimAt === undefined || acting.some(isAboutDisk)) return deeds;
  return [...deeds.victims.keys()].some(isHere) ? deeds : { ...deeds, lastDiskVictimAt: undefined };
}

/**
 * Only who is still here is remembered. What a victim had on disk begins to go when the victim is gone, which may take a
 * while by itself: only from then on can be seen whether it was enough.
 */
export function deedsFor(deeds: Deeds, isHere: (uid: PodUid) => boolean, now: number): Deeds {
  if ([...deeds.victims.keys()].every(isHere)) return deeds;
  const victims = new Map([...deeds.victims].filter(([uid]) => isHere(uid)));
  return { ...deeds, victims, lastDiskVictimAt: deeds.lastDiskVictimAt === undefined ? undefined : now };
}
