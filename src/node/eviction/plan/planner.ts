import type { EvictionThreshold } from "../../../ground/config/index.ts";
import { type IdentifiedPod, ownGraceSeconds, type PodUid, uidOf } from "../../../ground/model/index.ts";
import { type Measured, type RankKeys, ranked } from "./ranking.ts";
import type { DiskLayout, Observation, Observations } from "./signals.ts";
import { amountToReach, isHard, wantedAmount } from "./threshold-amounts.ts";
import { isAboutDisk, isAboutMemory, type Look, runsOutInMs, type Sample } from "./thresholds-met.ts";
import { reliefFor } from "./usage.ts";

/** A pod on this node, as far as the decision who has to go depends on it. */
export interface EvictionCandidate extends Measured {
  readonly life: CandidateLife;
  /** Why the node never takes it off; undefined: it may go. */
  readonly exemption: string | undefined;
}

export type CandidateLife =
  | { readonly step: "running" }
  /** Its containers are being stopped. */
  | {
      readonly step: "stopping";
      /** When what still runs is killed; undefined while nothing was told to stop. */
      readonly killAt: number | undefined;
      readonly isAtOnce: boolean;
    }
  /** Nothing of it runs; its volumes are being taken away. */
  | { readonly step: "stopped" };

/** How long a pod is given to end: until then it is asked to, "at once": it is killed. */
export type EvictionGrace = number | "at once";

/** What was done under this pressure so far. */
export interface PastSteps {
  readonly victims: ReadonlyMap<PodUid, { readonly at: number; readonly grace: EvictionGrace }>;
  readonly lastVictimAt: number | undefined;
  /** For a disk that is still too full; undefined: none, or it was enough. */
  readonly lastDiskVictimAt: number | undefined;
  /** How long after the end of its grace that one was gone. */
  readonly diskVictimLateMs: number;
  readonly lastReclaimAt: number | undefined;
  /** Since when images and dead containers are being removed; undefined: they are not. */
  readonly reclaimingSince: number | undefined;
}

export const noPastSteps: PastSteps = {
  victims: new Map(),
  lastVictimAt: undefined,
  lastDiskVictimAt: undefined,
  diskVictimLateMs: 0,
  lastReclaimAt: undefined,
  reclaimingSince: undefined,
};

export interface Situation {
  readonly now: number;
  readonly look: Look;
  readonly observations: Observations;
  readonly layout: DiskLayout;
  readonly pastSteps: PastSteps;
  readonly candidates: readonly EvictionCandidate[];
  /** For soft evictions; negative: the pod's own. */
  readonly maxPodGraceSeconds: number;
}

export type Reclaim = "containers" | "images";

export type EvictionStep =
  /** No threshold asks for anything. */
  | { readonly type: "rest" }
  /** Something was done, and its effect is awaited. */
  | { readonly type: "wait"; readonly threshold: EvictionThreshold }
  /** First what nobody would miss. */
  | { readonly type: "reclaim"; readonly threshold: EvictionThreshold; readonly means: readonly Reclaim[] }
  /** Pods that end anyway are to end sooner. */
  | {
      readonly type: "hasten";
      readonly threshold: EvictionThreshold;
      readonly pods: readonly IdentifiedPod[];
      readonly grace: EvictionGrace;
    }
  | {
      readonly type: "evict";
      readonly threshold: EvictionThreshold;
      readonly victim: EvictionCandidate;
      readonly keys: RankKeys;
      readonly grace: EvictionGrace;
    }
  /** Too little, and nothing that may go. */
  | { readonly type: "stuck"; readonly threshold: EvictionThreshold };

const hardGraceSeconds = 1;
/** Asking nicely takes two seconds or more; whoever takes all there is within this is not asked. */
const urgentMs = 4_000;
/** With so little of what has to be left, nobody is asked either. */
const urgentShare = 0.25;
/** Victims that are not pressing follow each other at this distance, so that a spike costs one pod and not all. */
const spacingMs = 1_000;
/** What was killed in an instant has to be seen in the figures before the next one goes. */
const pressingSpacingMs = 100;
/** What a pod had on disk is gone a while after the pod is: runtimes and file systems take their time. */
const diskSpacingMs = 15_000;
const longestDiskSpacingMs = 60_000;
/**
 * A pod that was killed is gone after that, or something holds it: nobody waits for it any longer. As long as the kubelet
 * gives one at the least: a machine short of memory is slow at this too, and whoever is next may have next to nothing.
 * Where memory runs out meanwhile, nobody waits at all.
 */
const killTakesMs = 10_000;
/** Volumes take longer to go than processes. */
const releaseTakesMs = 30_000;
const unhastenedMs = 30_000;
const reclaimAgainMs = 10_000;
const reclaimTakesMs = 30_000;

/** What to do next. Takes the present as it is: who is chosen twice, or has gone by himself, does no harm. */
export function nextStep(situation: Situation): EvictionStep {
  let held: EvictionStep = { type: "rest" };
  for (const threshold of situation.look.acting) {
    const observed = situation.observations.get(threshold.signal);
    if (observed === undefined) continue;
    const step = stepFor(threshold, observed, situation);
    if (step.type !== "wait" && step.type !== "stuck") return step;
    if (held.type === "rest" || held.type === "wait") held = step;
  }
  return held;
}

function stepFor(threshold: EvictionThreshold, observed: Observation, situation: Situation): EvictionStep {
  const { pastSteps, now, candidates, layout } = situation;
  const wait: EvictionStep = { type: "wait", threshold };
  const isPressing = isUrgent(threshold, observed, situation);
  const isLosing = isRunningOut(threshold, situation);
  const leaving = candidates.filter(
    (candidate) => isAwaited(candidate, threshold, situation) && isTimely(candidate, threshold, isPressing, now),
  );
  const mine = leaving.filter(({ pod }) => pastSteps.victims.has(uidOf(pod)));
  const lack = amountToReach(threshold, observed) - observed.available;
  const means = reclaimFor(threshold, layout);
  if (leaving.length > 0 && relief(leaving, threshold, layout) >= lack) {
    const sooner = hastened(leaving, threshold, isPressing, situation);
    // What nobody would miss goes before anybody's last minutes.
    const isFirst = means.length > 0 && mine.length === 0;
    return (sooner && isFirst ? reclaimBefore(means, threshold, situation) : undefined) ?? sooner ?? wait;
  }
  // Whoever takes all there is may not be the one that was chosen.
  if (mine.length > 0 && !isLosing) return hastened(mine, threshold, isPressing, situation) ?? wait;
  if (isOutdated(observed, pastSteps)) return wait;
  const reclaim = means.length > 0 ? reclaimBefore(means, threshold, situation) : undefined;
  if (reclaim !== undefined) return reclaim;
  if (isAboutDisk(threshold) && now < freedAt(pastSteps)) return wait;
  // What got less before a victim that is gone was chosen may have been its doing.
  const isStillPressing = isPressing && (mine.length > 0 || isRateFresh(threshold, situation));
  const apartMs = isStillPressing ? pressingSpacingMs : spacingMs;
  if (now < (pastSteps.lastVictimAt ?? Number.NEGATIVE_INFINITY) + apartMs) return wait;
  const step = eviction(threshold, isPressing, situation);
  return step.type === "evict" && !isPressing && isInVain(step.victim, lack, threshold, situation) ? wait : step;
}

/** By then, what the last victim had on disk has gone. A machine that was slow to end it is as slow at its files. */
function freedAt({ lastDiskVictimAt, diskVictimLateMs }: PastSteps): number {
  if (lastDiskVictimAt === undefined) return Number.NEGATIVE_INFINITY;
  return lastDiskVictimAt + Math.min(Math.max(diskSpacingMs, diskVictimLateMs), longestDiskSpacingMs);
}

/** Whether it was seen before something was done about it, and so says nothing of whether that was enough. */
function isOutdated({ readAt }: Observation, { lastVictimAt, lastDiskVictimAt, lastReclaimAt }: PastSteps): boolean {
  return (
    readAt !== undefined &&
    [lastVictimAt, lastDiskVictimAt, lastReclaimAt].some((at) => at !== undefined && readAt < at)
  );
}

/**
 * Whether the pod would not be enough while one that is takes long to die: a machine that is slow at killing would be as
 * slow at killing this one, and have nothing from it. Whoever is enough goes, and so does anybody once the other hangs.
 */
function isInVain(
  victim: EvictionCandidate,
  lack: number,
  threshold: EvictionThreshold,
  situation: Situation,
): boolean {
  const { candidates, pastSteps, layout, now } = situation;
  const dying = candidates.filter(
    ({ pod, life }) =>
      pastSteps.victims.has(uidOf(pod)) && life.step === "stopping" && now < (life.killAt ?? now) + releaseTakesMs,
  );
  return relief([victim], threshold, layout) < lack && relief(dying, threshold, layout) >= lack;
}

function eviction(threshold: EvictionThreshold, isPressing: boolean, situation: Situation): EvictionStep {
  const { candidates, layout } = situation;
  const eligible = candidates.filter(({ exemption, life }) => exemption === undefined && life.step === "running");
  const [first] = ranked(eligible, threshold.signal, layout);
  if (first === undefined) {
    // Whoever was asked to go in good time is not, now that there is none left.
    const leaving = candidates.filter(({ life }) => life.step === "stopping");
    return hastened(leaving, threshold, isPressing, situation) ?? { type: "stuck", threshold };
  }
  const { item: victim, keys } = first;
  return { type: "evict", threshold, victim, keys, grace: graceFor(victim.pod, threshold, isPressing, situation) };
}

/** Removed before any pod has to go, depending on which disk is short. */
export function reclaimFor({ signal }: Pick<EvictionThreshold, "signal">, layout: DiskLayout): readonly Reclaim[] {
  if (!isAboutDisk({ signal })) return [];
  const isNodeDisk = signal.startsWith("nodefs.");
  switch (layout) {
    case "one disk for all":
      return ["containers", "images"];
    case "images apart":
      return isNodeDisk ? [] : ["containers", "images"];
    case "containers apart":
      return signal.startsWith("imagefs.") ? ["images"] : ["containers"];
  }
}

/** Undefined: all that can be removed has been, or it takes too long. */
function reclaimBefore(
  means: readonly Reclaim[],
  threshold: EvictionThreshold,
  { pastSteps, now }: Situation,
): EvictionStep | undefined {
  if (pastSteps.reclaimingSince !== undefined) {
    return now - pastSteps.reclaimingSince < reclaimTakesMs ? { type: "wait", threshold } : undefined;
  }
  return isReclaimDue(pastSteps, now) ? { type: "reclaim", threshold, means } : undefined;
}

/** What a victim leaves behind may be what has to be removed. */
function isReclaimDue({ lastReclaimAt, lastVictimAt }: PastSteps, now: number): boolean {
  if (lastReclaimAt === undefined) return true;
  return now - lastReclaimAt >= reclaimAgainMs || (lastVictimAt !== undefined && lastVictimAt >= lastReclaimAt);
}

function graceFor(
  pod: IdentifiedPod,
  threshold: EvictionThreshold,
  isPressing: boolean,
  { maxPodGraceSeconds }: Situation,
): EvictionGrace {
  if (isPressing) return "at once";
  if (isHard(threshold)) return hardGraceSeconds;
  const own = ownGraceSeconds(pod);
  return maxPodGraceSeconds < 0 ? own : Math.min(maxPodGraceSeconds, own);
}

/** Whether nothing would be left before a pod that is asked to end has ended. */
function isUrgent(threshold: EvictionThreshold, observed: Observation, situation: Situation): boolean {
  if (isRunningOut(threshold, situation)) return true;
  const isShort = observed.available < wantedAmount(threshold, observed) * urgentShare;
  return isHard(threshold) && isAboutMemory(threshold) && isShort;
}

function isRunningOut(threshold: EvictionThreshold, { look }: Situation): boolean {
  if (!isHard(threshold) || isAboutDisk(threshold)) return false;
  const sample: Sample | undefined = look.record.samples.get(threshold.signal);
  return sample !== undefined && runsOutInMs(sample) < urgentMs;
}

function isRateFresh({ signal }: EvictionThreshold, { look, pastSteps }: Situation): boolean {
  const since = look.record.samples.get(signal)?.since ?? Number.NEGATIVE_INFINITY;
  return since >= (pastSteps.lastVictimAt ?? Number.NEGATIVE_INFINITY);
}

/** Whether the pod is about to give back what is short, and takes no longer about it than it should. */
function isAwaited(candidate: EvictionCandidate, threshold: EvictionThreshold, { pastSteps, now }: Situation): boolean {
  const { pod, life, exemption } = candidate;
  const isDisk = isAboutDisk(threshold);
  const chosen = pastSteps.victims.get(uidOf(pod));
  switch (life.step) {
    case "running":
      return false;
    case "stopping": {
      const asked = chosen && chosen.at + (chosen.grace === "at once" ? 0 : chosen.grace * 1000);
      const killAt = life.killAt ?? asked;
      // Nobody knows when it begins to end: only on one that can be hastened, and so has a time then, one can count.
      if (killAt === undefined) return isHard(threshold) && exemption === undefined;
      return now < killAt + (isDisk ? releaseTakesMs : killTakesMs);
    }
    case "stopped":
      // Volumes may be in memory.
      return chosen !== undefined && now < chosen.at + (isDisk ? releaseTakesMs : killTakesMs);
  }
}

/** On one that nobody may hasten a hard threshold waits as long as the kubelet waits for a victim, and not in need. */
function isTimely(
  { life, exemption }: EvictionCandidate,
  threshold: EvictionThreshold,
  isPressing: boolean,
  now: number,
): boolean {
  if (exemption === undefined || !isHard(threshold) || life.step !== "stopping") return true;
  return (life.killAt ?? now) <= now + (isPressing ? hardGraceSeconds * 1000 : unhastenedMs);
}

/** What they give back together; whoever could not be measured may give back anything. */
function relief(leaving: readonly EvictionCandidate[], { signal }: EvictionThreshold, layout: DiskLayout): number {
  return leaving.reduce(
    (sum, { use }) => sum + ((use && reliefFor(signal, use, layout)) ?? Number.POSITIVE_INFINITY),
    0,
  );
}

/** Hard thresholds wait for nobody's long grace. */
function hastened(
  leaving: readonly EvictionCandidate[],
  threshold: EvictionThreshold,
  isPressing: boolean,
  { now, pastSteps }: Situation,
): EvictionStep | undefined {
  if (!isHard(threshold)) return undefined;
  const grace: EvictionGrace = isPressing ? "at once" : hardGraceSeconds;
  const late = leaving.filter(({ pod, life, exemption }) => {
    if (life.step !== "stopping" || life.isAtOnce || exemption !== undefined) return false;
    if (isPressing) return pastSteps.victims.get(uidOf(pod))?.grace !== "at once";
    return life.killAt === undefined ? !pastSteps.victims.has(uidOf(pod)) : life.killAt - now > hardGraceSeconds * 1000;
  });
  return late.length === 0 ? undefined : { type: "hasten", threshold, pods: late.map(({ pod }) => pod), grace };
}
