import type { EvictionSignal, EvictionThreshold } from "../../../ground/config/index.ts";
import { type PodUid, uidOf } from "../../../ground/model/index.ts";
import { pressedPaceMs } from "./pace.ts";
import { pastStepsAfter, pastStepsFor, pastStepsUnder, reclaimed } from "./past-steps.ts";
import {
  type EvictionCandidate,
  type EvictionGrace,
  nextStep,
  type PastSteps,
  type Reclaim,
  type Situation,
} from "./planner.ts";
import type { RankKeys } from "./ranking.ts";
import { type DiskLayout, type Observation, type Observations, signalFacts } from "./signals.ts";
import { lookAt, type PressureRecord } from "./thresholds-met.ts";
import { type Held, reliefFor } from "./usage.ts";

/** What a forecast starts from. */
export interface EvictionSituation extends Situation {
  readonly record: PressureRecord;
  readonly thresholds: readonly EvictionThreshold[];
  readonly transitionMs: number;
}

export interface ForecastEviction {
  readonly victim: EvictionCandidate;
  readonly threshold: EvictionThreshold;
  readonly keys: RankKeys;
  readonly grace: EvictionGrace;
  /** undefined: nobody knows. */
  readonly frees: number | undefined;
  /** From now. */
  readonly inMs: number;
}

export interface Forecast {
  /** What would be removed first. */
  readonly reclaims: ReadonlySet<Reclaim>;
  readonly evictions: readonly ForecastEviction[];
  readonly outcome: "nothing to do" | "enough" | "nothing left that may go";
}

/**
 * What would be done if nobody took or gave back anything but those who are taken off: the real planner, step by step, on
 * a node that does as it is told.
 */
export function foresee(start: EvictionSituation, reclaimable: ReadonlyMap<Reclaim, Held>): Forecast {
  const world = new ForeseenNode(start, reclaimable);
  const reclaims = new Set<Reclaim>();
  const evictions: ForecastEviction[] = [];
  // Each pod goes, is hastened and is waited for so often at most; whatever is left over is a defect that must not hang.
  const mostSteps = 100 + start.candidates.length * 50;
  for (let count = 0; count < mostSteps; count++) {
    const situation = world.look();
    const step = nextStep(situation);
    switch (step.type) {
      case "rest": {
        const graceEndsAt = world.nextGraceEnd(situation);
        if (graceEndsAt === undefined) {
          const isIdle = evictions.length === 0 && reclaims.size === 0;
          return { reclaims, evictions, outcome: isIdle ? "nothing to do" : "enough" };
        }
        world.waitUntil(graceEndsAt);
        break;
      }
      case "stuck":
        return { reclaims, evictions, outcome: "nothing left that may go" };
      case "wait":
        world.wait();
        break;
      case "reclaim":
        for (const means of step.means) reclaims.add(means);
        world.reclaim(step.means);
        break;
      case "hasten":
        world.note(step);
        world.stop(
          step.pods.map((pod) => uidOf(pod)),
          step.grace,
        );
        break;
      case "evict": {
        const { victim, threshold, keys, grace } = step;
        const frees = victim.use && reliefFor(threshold.signal, victim.use, start.layout);
        evictions.push({ victim, threshold, keys, grace, frees, inMs: situation.now - start.now });
        world.note(step);
        world.stop([uidOf(victim.pod)], grace);
      }
    }
  }
  return { reclaims, evictions, outcome: "nothing left that may go" };
}

const waitMs = 1_000;

class ForeseenNode {
  readonly #start: EvictionSituation;
  readonly #reclaimable: Map<Reclaim, Held>;
  #now: number;
  #record: PressureRecord;
  #pastSteps: PastSteps;
  #observations: Observations;
  #candidates: readonly EvictionCandidate[];
  /** In a row. */
  #waits = 0;

  constructor(start: EvictionSituation, reclaimable: ReadonlyMap<Reclaim, Held>) {
    this.#start = start;
    this.#reclaimable = new Map(reclaimable);
    this.#now = start.now;
    this.#record = start.record;
    this.#pastSteps = start.pastSteps;
    // In what is foreseen, every disk answers at once.
    this.#observations = new Map(
      [...start.observations].map(([signal, { available, capacity }]) => [signal, { available, capacity }]),
    );
    this.#candidates = start.candidates;
  }

  look(): Situation {
    const look = lookAt(this.#record, this.#observations, this.#start, this.#now);
    this.#record = look.record;
    const here = new Set(this.#candidates.map(({ pod }) => uidOf(pod)));
    const isHere = (uid: PodUid): boolean => here.has(uid);
    this.#pastSteps = pastStepsFor(pastStepsUnder(this.#pastSteps, look, isHere), isHere, this.#now);
    return {
      ...this.#start,
      now: this.#now,
      look,
      observations: this.#observations,
      pastSteps: this.#pastSteps,
      candidates: this.#candidates,
    };
  }

  note(step: Parameters<typeof pastStepsAfter>[1]): void {
    this.#waits = 0;
    this.#pastSteps = pastStepsAfter(this.#pastSteps, step, this.#now);
  }

  /** When a soft threshold that is met has been met for long enough. */
  nextGraceEnd({ look }: Situation): number | undefined {
    const ends = [...look.record.metSince]
      .map(([{ graceMs }, since]) => since + graceMs)
      .filter((at) => at > this.#now);
    return ends.length === 0 ? undefined : Math.min(...ends);
  }

  /**
   * Until the next of those who are leaving has left; at first only for a moment, since it need not be that one whom the
   * planner waits for: some take an hour, and nobody counts on them.
   */
  wait(): void {
    const ends = this.#candidates.flatMap(({ life }) => (life.step === "stopping" ? [life.killAt ?? this.#now] : []));
    const patienceMs = ends.length === 0 ? waitMs : waitMs * 2 ** this.#waits++;
    this.waitUntil(Math.max(this.#now + 1, Math.min(this.#now + patienceMs, ...ends)));
  }

  waitUntil(moment: number): void {
    this.#now = moment;
    const gone = this.#candidates.filter(({ life }) => life.step === "stopping" && (life.killAt ?? 0) <= moment);
    for (const candidate of gone) this.#leave(candidate);
    this.#candidates = this.#candidates.filter((candidate) => !gone.includes(candidate));
  }

  /** And looks again soon. */
  stop(uids: readonly PodUid[], grace: EvictionGrace): void {
    const killAt = this.#now + (grace === "at once" ? 0 : grace * 1000);
    this.#candidates = this.#candidates.map((candidate) =>
      uids.includes(uidOf(candidate.pod))
        ? { ...candidate, life: { step: "stopping", killAt, isAtOnce: grace === "at once" } }
        : candidate,
    );
    this.waitUntil(this.#now + pressedPaceMs);
  }

  reclaim(means: readonly Reclaim[]): void {
    for (const each of means) {
      const held = this.#reclaimable.get(each);
      this.#reclaimable.delete(each);
      if (held !== undefined) this.#give((signal) => reclaimRelief(signal, each, held, this.#start.layout));
    }
    this.#pastSteps = reclaimed(this.#pastSteps, this.#now);
  }

  #leave({ use }: EvictionCandidate): void {
    if (use !== undefined) this.#give((signal) => reliefFor(signal, use, this.#start.layout) ?? 0);
  }

  #give(amountOf: (signal: EvictionSignal) => number): void {
    this.#observations = new Map(
      [...this.#observations].map(([signal, observed]): readonly [EvictionSignal, Observation] => [
        signal,
        { ...observed, available: observed.available + amountOf(signal) },
      ]),
    );
  }
}

/** How much more there is of it when these have been removed. */
function reclaimRelief(signal: EvictionSignal, means: Reclaim, held: Held, layout: DiskLayout): number {
  if (signalFacts[signal].condition !== "DiskPressure") return 0;
  const isThere = {
    "one disk for all": true,
    "images apart": !signal.startsWith("nodefs."),
    "containers apart": signal.startsWith("imagefs.") === (means === "images"),
  }[layout];
  return isThere ? held[signalFacts[signal].resource === "inodes" ? "inodes" : "bytes"] : 0;
}
