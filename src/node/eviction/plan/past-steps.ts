import { type PodUid, uidOf } from "../../../ground/model/index.ts";
import type { EvictionStep, PastSteps } from "./planner.ts";
import { isAboutDisk, type Look } from "./thresholds-met.ts";

/** What was done so far, once the step is under way. */
export function pastStepsAfter(pastSteps: PastSteps, step: EvictionStep, now: number): PastSteps {
  switch (step.type) {
    case "rest":
    case "wait":
    case "stuck":
      return pastSteps;
    case "reclaim":
      return { ...pastSteps, reclaimingSince: now };
    case "hasten": {
      const victims = new Map(pastSteps.victims);
      for (const pod of step.pods) victims.set(uidOf(pod), { at: now, grace: step.grace });
      return { ...pastSteps, victims };
    }
    case "evict": {
      const victims = new Map(pastSteps.victims);
      victims.set(uidOf(step.victim.pod), { at: now, grace: step.grace });
      const lastDiskVictimAt = isAboutDisk(step.threshold) ? now : pastSteps.lastDiskVictimAt;
      return { ...pastSteps, victims, lastVictimAt: now, lastDiskVictimAt };
    }
  }
}

export function reclaimed(pastSteps: PastSteps, now: number): PastSteps {
  return { ...pastSteps, reclaimingSince: undefined, lastReclaimAt: now };
}

/**
 * Once no disk is too full and all victims are gone, what they had there has been seen to go, or was not needed. One that
 * is still here may fill it again.
 */
export function pastStepsUnder(
  pastSteps: PastSteps,
  { acting }: Pick<Look, "acting">,
  isHere: (uid: PodUid) => boolean,
): PastSteps {
  if (pastSteps.lastDiskVictimAt === undefined || acting.some(isAboutDisk)) return pastSteps;
  return [...pastSteps.victims.keys()].some(isHere) ? pastSteps : { ...pastSteps, lastDiskVictimAt: undefined };
}

/**
 * Only who is still here is remembered. What a victim had on disk begins to go when the victim is gone, which may take a
 * while by itself: only from then on can be seen whether it was enough.
 */
export function pastStepsFor(pastSteps: PastSteps, isHere: (uid: PodUid) => boolean, now: number): PastSteps {
  if ([...pastSteps.victims.keys()].every(isHere)) return pastSteps;
  const victims = new Map([...pastSteps.victims].filter(([uid]) => isHere(uid)));
  if (pastSteps.lastDiskVictimAt === undefined) return { ...pastSteps, victims };
  const gone = [...pastSteps.victims].filter(([uid]) => !isHere(uid));
  const late = gone.map(([, { at, grace }]) => now - at - (grace === "at once" ? 0 : grace * 1000));
  return { ...pastSteps, victims, lastDiskVictimAt: now, diskVictimLateMs: Math.max(0, ...late) };
}
