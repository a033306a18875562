import {
  type EvictionSignal,
  evictionSignals,
  isEvictionSignal,
  parseEvictionThreshold,
} from "../../ground/config/index.ts";
import type { IdentifiedPod } from "../../ground/model/index.ts";
import { type EvictionSituation, type Forecast, type ForecastEviction, foresee } from "./plan/forecast.ts";
import type { Reclaim } from "./plan/planner.ts";
import { amountText, signalFacts } from "./plan/signals.ts";
import { isHard, wantedText } from "./plan/threshold-amounts.ts";
import type { Held } from "./plan/usage.ts";

/** What would be evicted now, for people and programs; fields are only ever added. */
export interface EvictionDryRun {
  readonly apiVersion: "nodelet.dev/v1";
  readonly kind: "EvictionDryRun";
  readonly signals: readonly SignalShown[];
  /** What would be removed before any pod. */
  readonly reclaims: readonly Reclaim[];
  readonly victims: readonly VictimShown[];
  readonly spared: readonly { readonly pod: string; readonly why: string }[];
  readonly outcome: Forecast["outcome"];
}

export interface SignalShown {
  readonly signal: EvictionSignal;
  readonly available: string;
  readonly capacity: string;
  /** Somebody wanted to know what would be if it were so. */
  readonly isPretended: boolean;
  readonly thresholds: readonly {
    readonly kind: "hard" | "soft";
    readonly wanted: string;
    readonly graceSeconds: number;
    /** undefined: there is enough. */
    readonly metForSeconds: number | undefined;
  }[];
}

export interface VictimShown {
  readonly pod: string;
  readonly signal: EvictionSignal;
  /** The keys by which it comes first. */
  readonly used: string | undefined;
  readonly requested: string;
  readonly isOverRequest: boolean;
  readonly priority: number;
  readonly frees: string | undefined;
  /** 0: it is killed at once. */
  readonly graceSeconds: number;
  readonly inSeconds: number;
}

/** Somebody asked for something that there is not; says what there is. */
export class DryRunQuestionError extends Error {
  override readonly name = "DryRunQuestionError";
}

/** `memory.available=400Mi`, as often as there are signals. */
export function pretendedSignals(texts: readonly string[]): ReadonlyMap<EvictionSignal, number> {
  return new Map(
    texts.map((text) => {
      const [signal = "", amount = ""] = text.split("=", 2);
      if (!isEvictionSignal(signal)) {
        throw new DryRunQuestionError(`there is no signal "${signal}"; there are ${evictionSignals.join(", ")}`);
      }
      return [signal, amountOf(amount, text)];
    }),
  );
}

function amountOf(amount: string, text: string): number {
  try {
    const parsed = parseEvictionThreshold(amount);
    if (parsed !== "off" && "quantity" in parsed) return Number(parsed.quantity / 1_000_000_000n);
  } catch {
    // Said below, with what would do.
  }
  throw new DryRunQuestionError(`"${text}" says no amount; an example is memory.available=400Mi`);
}

export function evictionDryRun(
  situation: EvictionSituation,
  pretended: ReadonlyMap<EvictionSignal, number>,
  reclaimable: ReadonlyMap<Reclaim, Held>,
): EvictionDryRun {
  const { reclaims, evictions, outcome } = foresee(situation, reclaimable);
  return {
    apiVersion: "nodelet.dev/v1",
    kind: "EvictionDryRun",
    signals: signalsShown(situation, pretended),
    reclaims: [...reclaims],
    victims: evictions.map(victimShown),
    spared: situation.candidates.flatMap(({ pod, exemption }) =>
      exemption === undefined ? [] : [{ pod: nameOf(pod), why: exemption }],
    ),
    outcome,
  };
}

function signalsShown(
  { observations, thresholds, look, now }: EvictionSituation,
  pretended: ReadonlyMap<EvictionSignal, number>,
): readonly SignalShown[] {
  return [...observations].flatMap(([signal, observed]) => {
    const own = thresholds.filter((threshold) => threshold.signal === signal);
    if (own.length === 0 && !pretended.has(signal)) return [];
    const { format } = signalFacts[signal];
    return [
      {
        signal,
        available: amountText(observed.available, format),
        capacity: amountText(observed.capacity, format),
        isPretended: pretended.has(signal),
        thresholds: own.map((threshold) => {
          const since = look.record.metSince.get(threshold);
          return {
            kind: isHard(threshold) ? ("hard" as const) : ("soft" as const),
            wanted: wantedText(threshold, observed),
            graceSeconds: threshold.graceMs / 1000,
            metForSeconds: since === undefined ? undefined : Math.round((now - since) / 1000),
          };
        }),
      },
    ];
  });
}

function victimShown({ victim, threshold, keys, grace, frees, inMs }: ForecastEviction): VictimShown {
  const { format } = signalFacts[threshold.signal];
  return {
    pod: nameOf(victim.pod),
    signal: threshold.signal,
    used: keys.used === undefined ? undefined : amountText(keys.used, format),
    requested: amountText(keys.requested, format),
    isOverRequest: keys.isOverRequest,
    priority: keys.priority,
    frees: frees === undefined ? undefined : amountText(frees, format),
    graceSeconds: grace === "at once" ? 0 : grace,
    inSeconds: Math.round(inMs / 1000),
  };
}

function nameOf({ metadata: { namespace, name } }: IdentifiedPod): string {
  return `${namespace}/${name}`;
}
