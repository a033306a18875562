import { formatOf, type QuantityFormat } from "../model/index.ts";
import type { AgentConfig } from "./agent-config.ts";
import { durationOf } from "./text/duration-text.ts";
import {
  type EvictionAmount,
  type EvictionSignal,
  evictionSignals,
  parseEvictionThreshold,
  parseMinimumReclaim,
} from "./text/eviction-text.ts";

/** From how little of something on the node has to act. */
export interface EvictionThreshold {
  readonly signal: EvictionSignal;
  readonly amount: EvictionAmount;
  /** How its amount is written. */
  readonly format: QuantityFormat;
  /** How long there has to be too little; 0: not at all, the threshold is a hard one. */
  readonly graceMs: number;
  /** How much more to free once something has to be freed. */
  readonly minReclaim: EvictionAmount | undefined;
}

export interface EvictionSettings {
  /** Hard ones first, memory first among them. */
  readonly thresholds: readonly EvictionThreshold[];
  /** For soft evictions, in seconds; negative: the pod's own. */
  readonly maxPodGraceSeconds: number;
  /** For how long after the last sign of it the node is said to be under pressure. */
  readonly transitionMs: number;
}

export function evictionSettingsOf({ kubelet }: AgentConfig): EvictionSettings {
  const { evictionHard, evictionSoft, evictionSoftGracePeriod, evictionMinimumReclaim } = kubelet;
  const thresholdsIn = (map: Readonly<Record<string, string>>, graceMsOf: (signal: string) => number) =>
    evictionSignals.flatMap((signal): readonly EvictionThreshold[] => {
      const text = map[signal];
      const amount = text === undefined ? "off" : parseEvictionThreshold(text);
      if (text === undefined || amount === "off") return [];
      const more = evictionMinimumReclaim[signal];
      const minReclaim = more === undefined ? undefined : parseMinimumReclaim(more);
      return [{ signal, amount, format: formatOf(text), graceMs: graceMsOf(signal), minReclaim }];
    });
  const hard = thresholdsIn(evictionHard, () => 0);
  const soft = thresholdsIn(evictionSoft, (signal) => durationOf(evictionSoftGracePeriod[signal] ?? "0s"));
  const ofAllPods = kubelet.enforceNodeAllocatable.includes("pods") ? hard.flatMap(forAllPods) : [];
  return {
    thresholds: [...hard, ...ofAllPods, ...soft],
    maxPodGraceSeconds: kubelet.evictionMaxPodGracePeriod,
    transitionMs: kubelet.evictionPressureTransitionPeriodMs,
  };
}

/** What the node must keep free of its memory, pods together must keep free of what they may use. */
function forAllPods(threshold: EvictionThreshold): readonly EvictionThreshold[] {
  return threshold.signal === "memory.available" ? [{ ...threshold, signal: "allocatableMemory.available" }] : [];
}
