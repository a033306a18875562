import { isDeepStrictEqual } from "node:util";
import {
  type Clock,
  isAbort,
  type Logger,
  messageOf,
  Pause,
  TaskScope,
  withDeadline,
} from "../../../ground/base/index.ts";
import type { EvictionSettings, EvictionSignal, EvictionThreshold } from "../../../ground/config/index.ts";
import {
  describePod,
  type IdentifiedPod,
  type PodUid,
  type RecordNodeEvent,
  uidOf,
} from "../../../ground/model/index.ts";
import type { Eviction } from "../evict.ts";
import type { EvictionSituation } from "../plan/forecast.ts";
import { evictionWords } from "../plan/message.ts";
import { nextLookMs } from "../plan/pace.ts";
import { pastStepsAfter, pastStepsFor, pastStepsUnder, reclaimed } from "../plan/past-steps.ts";
import {
  type EvictionCandidate,
  type EvictionGrace,
  type EvictionStep,
  nextStep,
  noPastSteps,
  type PastSteps,
  type Reclaim,
  type Situation,
} from "../plan/planner.ts";
import { amountText, type Observations, type PressureCondition, signalFacts } from "../plan/signals.ts";
import { withContainerThresholds } from "../plan/threshold-amounts.ts";
import { isAboutDisk, type Look, lookAt, noPressure, type PressureRecord } from "../plan/thresholds-met.ts";
import type { ContainerUse, PodUse } from "../plan/usage.ts";
import type { DiskUses } from "./disk-uses.ts";
import type { MemoryAlarms } from "./memory-alarms.ts";
import type { Reading } from "./signal-reader.ts";

export interface EvictionPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly read: (signal: AbortSignal) => Promise<Reading>;
  readonly alarms: Pick<MemoryAlarms, "follow" | "close">;
  readonly alarmPath: Parameters<MemoryAlarms["follow"]>[2];
  /** Pods that run or are about to end, without what they use. */
  readonly pods: () => readonly Omit<EvictionCandidate, "use">[];
  readonly meter: {
    refresh(signal: AbortSignal): Promise<void>;
    use(pod: IdentifiedPod): PodUse | undefined;
    containers(pod: IdentifiedPod): readonly ContainerUse[];
    forgetAllBut(uids: ReadonlySet<PodUid>): void;
  };
  readonly disks: DiskUses;
  /** Removes what nobody would miss; may take long. */
  readonly reclaim: (means: Reclaim, signal: AbortSignal) => Promise<void>;
  /** Ends a pod for good. */
  readonly evict: (pod: IdentifiedPod, eviction: Eviction) => void;
  /** A pod that ends anyway ends sooner. */
  readonly hasten: (pod: IdentifiedPod, grace: EvictionGrace) => void;
  readonly recordNodeEvent: RecordNodeEvent;
  readonly onConditions: (conditions: readonly PressureCondition[]) => void;
  /** How old the figures were by which a pod was chosen. */
  readonly onStatsAge: (signal: string, ageMs: number) => void;
}

const reclaimWithinMs = 120_000;
/** What pods have on disk is measured anew for a decision after that. */
const diskUseGoodMs = 10_000;
const retryMs = 1_000;
/** While the runtime has not said which disk it uses. */
const askForDisksMs = 10_000;
const shortestRestMs = 20;

/**
 * Keeps the node from running out of memory, disk or processes: looks as often as it has to, tells which conditions the
 * node is in, and takes off pods when nothing else helps. What to do is decided by `nextStep`; here it is done. Nothing
 * here waits for a pod, a disk or the runtime, so that whoever is slow holds up no decision about others.
 */
export class EvictionManager {
  #settings: EvictionSettings;
  readonly #ports: EvictionPorts;
  readonly #pause: Pause;
  #record: PressureRecord = noPressure;
  #pastSteps: PastSteps = noPastSteps;
  #conditions: readonly PressureCondition[] = [];
  #layout: Reading["layout"];
  #thresholds: readonly EvictionThreshold[];
  #isStuck = false;
  #isLookWanted = false;

  constructor(settings: EvictionSettings, ports: EvictionPorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
    this.#thresholds = withoutDisks(settings.thresholds);
  }

  /** Other thresholds count from the next look on, which is now. */
  configure(settings: EvictionSettings): void {
    this.#settings = settings;
    const layout = this.#layout;
    this.#heed(
      layout === undefined ? withoutDisks(settings.thresholds) : withContainerThresholds(settings.thresholds, layout),
    );
    this.lookNow();
  }

  /** The pressure that the node is under, in the words of its conditions. */
  get conditions(): readonly PressureCondition[] {
    return this.#conditions;
  }

  /** Something may have got short. Also heard while a look is under way, which may have come too early for it. */
  readonly lookNow = (): void => {
    this.#isLookWanted = true;
    this.#pause.cutShort();
  };

  async run(signal: AbortSignal): Promise<void> {
    while (this.#settings.thresholds.length === 0) await this.#pause.wait(Number.POSITIVE_INFINITY, signal);
    const { clock } = this.#ports;
    await using scope = new TaskScope(signal);
    try {
      for (;;) {
        this.#isLookWanted = false;
        const nextMs = await this.#round(scope, signal);
        if (!this.#isLookWanted) await this.#pause.wait(nextMs, signal);
        // However often the kernel has something to tell.
        if (this.#isLookWanted) await clock.sleep(shortestRestMs, signal);
      }
    } finally {
      this.#ports.alarms.close();
    }
  }

  /**
   * Everything that decisions depend on, as it is now, or as it would be with so much available: for those who want to know
   * what would be decided. Nothing is done, and nothing remembered.
   */
  async situation(pretended: ReadonlyMap<EvictionSignal, number>, signal: AbortSignal): Promise<EvictionSituation> {
    const { read, clock, meter, disks, pods } = this.#ports;
    const reading = await read(signal);
    this.#adopt(reading.layout);
    const observations = pretending(reading.observations, pretended);
    // From what is to what is only pretended is no rate at which anything gets less.
    const record = { ...this.#record, samples: without(this.#record.samples, pretended) };
    const look = lookAt(record, observations, this.#lookSettings(), clock.monotonic());
    await meter.refresh(signal);
    if ([...look.record.metSince.keys()].some(isAboutDisk)) {
      await disks.measure(
        pods().map(({ pod }) => pod),
        signal,
      );
    }
    const now = clock.monotonic();
    return { ...this.#situation(look, observations, now), ...this.#lookSettings(), record };
  }

  /** Returns after how many milliseconds to look again. */
  async #round(scope: TaskScope, signal: AbortSignal): Promise<number> {
    try {
      return await this.#lookAndAct(scope, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#ports.log.error("Could not look after the node's resources", error);
      return retryMs;
    }
  }

  async #lookAndAct(scope: TaskScope, signal: AbortSignal): Promise<number> {
    const { clock, read, alarms, alarmPath, meter } = this.#ports;
    const reading = await read(signal);
    this.#adopt(reading.layout);
    const now = clock.monotonic();
    const look = lookAt(this.#record, reading.observations, this.#lookSettings(), now);
    this.#record = look.record;
    this.#pastSteps = pastStepsUnder(this.#pastSteps, look, (uid) =>
      this.#ports.pods().some(({ pod }) => uidOf(pod) === uid),
    );
    this.#tell(look.conditions);
    let step: EvictionStep = { type: "rest" };
    if (look.acting.length > 0) {
      await meter.refresh(signal);
      step = this.#act(this.#situation(look, reading.observations, now), scope);
    }
    this.#noteStuck(step);
    await alarms.follow(reading, this.#thresholds, alarmPath, now);
    const nextMs = nextLookMs(look, step, { thresholds: this.#thresholds, observations: reading.observations }, now);
    return this.#layout === undefined ? Math.min(nextMs, askForDisksMs) : nextMs;
  }

  #lookSettings() {
    return { thresholds: this.#thresholds, transitionMs: this.#settings.transitionMs };
  }

  /** Thresholds are about disks, and which disk holds what is known once the runtime has said so. */
  #adopt(layout: Reading["layout"]): void {
    if (layout === undefined || layout === this.#layout) return;
    this.#layout = layout;
    this.#heed(withContainerThresholds(this.#settings.thresholds, layout));
  }

  /** Since when one is met is remembered by the threshold itself: a grace must not begin anew with each other setting. */
  #heed(thresholds: readonly EvictionThreshold[]): void {
    const known = this.#thresholds;
    this.#thresholds = thresholds.map((each) => known.find((before) => isDeepStrictEqual(before, each)) ?? each);
  }

  #tell(conditions: readonly PressureCondition[]): void {
    const before = this.#conditions;
    if (conditions.length === before.length && conditions.every((each) => before.includes(each))) return;
    this.#conditions = conditions;
    this.#ports.log.info("The pressure on the node has changed", { conditions: conditions.join(" ") || "none" });
    this.#ports.onConditions(conditions);
  }

  #situation(look: Look, observations: Observations, now: number): Situation {
    const { pods, meter, disks } = this.#ports;
    const present = pods();
    const uids = new Set(present.map(({ pod }) => uidOf(pod)));
    this.#pastSteps = pastStepsFor(this.#pastSteps, (uid) => uids.has(uid), now);
    meter.forgetAllBut(uids);
    const candidates = present.map((candidate) => {
      const use = meter.use(candidate.pod);
      const disk = disks.of(uidOf(candidate.pod))?.disk;
      // What is known of its disk counts also where its memory can't be read, and the other way round.
      return { ...candidate, use: use === undefined && disk === undefined ? undefined : { ...use, disk } };
    });
    return {
      now,
      look,
      observations,
      layout: this.#layout ?? "one disk for all",
      pastSteps: this.#pastSteps,
      candidates,
      maxPodGraceSeconds: this.#settings.maxPodGraceSeconds,
    };
  }

  #act(situation: Situation, scope: TaskScope): EvictionStep {
    const step = nextStep(situation);
    if (step.type === "evict" && isAboutDisk(step.threshold) && !this.#areDiskUsesGood(situation)) {
      this.#measureDisks(situation.candidates, scope);
      return { type: "wait", threshold: step.threshold };
    }
    this.#pastSteps = pastStepsAfter(this.#pastSteps, step, situation.now);
    switch (step.type) {
      case "rest":
      case "wait":
      case "stuck":
        break;
      case "reclaim":
        this.#announce(step.threshold);
        scope.spawn("reclaim", (signal) => this.#reclaim(step.means, signal));
        break;
      case "hasten":
        this.#announce(step.threshold);
        for (const pod of step.pods) this.#ports.hasten(pod, step.grace);
        break;
      case "evict":
        this.#evict(step, situation);
    }
    return step;
  }

  #areDiskUsesGood({ now, pastSteps }: Situation): boolean {
    return this.#ports.disks.areNewerThan(Math.max(now - diskUseGoodMs, pastSteps.lastVictimAt ?? 0));
  }

  #measureDisks(candidates: readonly EvictionCandidate[], scope: TaskScope): void {
    const { disks } = this.#ports;
    if (disks.isUnderWay) return;
    scope.spawn("what pods have on disk", async (signal) => {
      await disks.measure(
        candidates.map(({ pod }) => pod),
        signal,
      );
      this.lookNow();
    });
  }

  #announce({ signal }: EvictionThreshold): void {
    const message = `Attempting to reclaim ${signalFacts[signal].resource}`;
    this.#ports.recordNodeEvent({ type: "Warning", reason: "EvictionThresholdMet", message });
  }

  async #reclaim(means: readonly Reclaim[], signal: AbortSignal): Promise<void> {
    const { clock, log, reclaim } = this.#ports;
    for (const each of means) {
      try {
        const late = (): Error => new Error(`it took longer than ${reclaimWithinMs / 1000} s`);
        await withDeadline(clock, reclaimWithinMs, late, signal, (bounded) => reclaim(each, bounded));
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        log.warn("Could not remove everything that is unused", { what: each, reason: messageOf(error) });
      }
    }
    this.#pastSteps = reclaimed(this.#pastSteps, clock.monotonic());
    this.lookNow();
  }

  #evict({ threshold, victim, grace }: Extract<EvictionStep, { type: "evict" }>, situation: Situation): void {
    const { log, meter, disks, clock, evict, onStatsAge } = this.#ports;
    const { pod } = victim;
    const { resource } = signalFacts[threshold.signal];
    const inMemory = meter.containers(pod);
    const onDisk = disks.of(uidOf(pod))?.containers ?? [];
    const containers = resource === "memory" ? inMemory : onDisk;
    const { look, observations } = situation;
    const words = evictionWords(pod, victim.use && { ...victim.use, containers }, resource, {
      acting: look.acting,
      observations,
    });
    this.#announce(threshold);
    for (const { signal } of look.acting) onStatsAge(signal, clock.monotonic() - situation.now);
    log.info("Evicting a pod because the node is short of resources", {
      pod: describePod(pod),
      signal: threshold.signal,
      available: amountText(observations.get(threshold.signal)?.available ?? 0, signalFacts[threshold.signal].format),
      grace: grace === "at once" ? grace : `${grace}s`,
    });
    evict(pod, { signal: threshold.signal, ...words, grace, isDisruption: true });
  }

  /** Once, not with every look. */
  #noteStuck(step: EvictionStep): void {
    const isStuck = step.type === "stuck";
    if (isStuck && !this.#isStuck) {
      this.#announce(step.threshold);
      this.#ports.log.warn("The node is short of resources, and no pod may be evicted", {
        signal: step.threshold.signal,
      });
    }
    this.#isStuck = isStuck;
  }
}

function withoutDisks(thresholds: readonly EvictionThreshold[]): readonly EvictionThreshold[] {
  return thresholds.filter((threshold) => !isAboutDisk(threshold));
}

function pretending(observations: Observations, pretended: ReadonlyMap<EvictionSignal, number>): Observations {
  const mixed = new Map(observations);
  for (const [signal, available] of pretended) {
    mixed.set(signal, { available, capacity: observations.get(signal)?.capacity ?? available });
  }
  return mixed;
}

function without<Key, Value>(all: ReadonlyMap<Key, Value>, keys: ReadonlyMap<Key, unknown>): ReadonlyMap<Key, Value> {
  return new Map([...all].filter(([key]) => !keys.has(key)));
}
