import type { EvictionSignal } from "../../../ground/config/index.ts";
import { type IdentifiedPod, podResources } from "../../../ground/model/index.ts";
import { type DiskLayout, signalFacts } from "./signals.ts";
import { type PodUse, useFor } from "./usage.ts";

/** A pod as it is ranked. */
export interface Measured {
  readonly pod: IdentifiedPod;
  /** undefined: nothing is known of it. */
  readonly use: PodUse | undefined;
}

/** By what a pod comes before another. */
export interface RankKeys {
  /** undefined: it could not be measured, or has nothing running. */
  readonly used: number | undefined;
  /** What it asked for, in the unit that the rule compares with. */
  readonly requested: number;
  readonly isOverRequest: boolean;
  readonly priority: number;
}

export interface Ranked<Item extends Measured> {
  readonly item: Item;
  readonly keys: RankKeys;
}

/** Those to go first come first; equal ones stay in the order they came in. */
export function ranked<Item extends Measured>(
  items: readonly Item[],
  signal: EvictionSignal,
  layout: DiskLayout,
): readonly Ranked<Item>[] {
  const compare = signal === "pid.available" ? byPriorityThenUse : byExcess;
  return items.map((item) => ({ item, keys: keysOf(item, signal, layout) })).sort((a, b) => compare(a.keys, b.keys));
}

function keysOf({ pod, use }: Measured, signal: EvictionSignal, layout: DiskLayout): RankKeys {
  const used = use && useFor(signal, use, layout);
  const requested = requestFor(pod, signal);
  return {
    used,
    requested,
    // Nobody can ask for files, so whoever has one has more than asked for.
    isOverRequest: used !== undefined && used > (signalFacts[signal].resource === "inodes" ? 0 : requested),
    priority: pod.spec.priority ?? 0,
  };
}

const nanosPerUnit = 1_000_000_000;

function requestFor({ spec }: IdentifiedPod, signal: EvictionSignal): number {
  const { resource } = signalFacts[signal];
  if (resource === "pids") return 0;
  // Of files the kubelet subtracts the bytes that were asked for, and so the order stays the same.
  const name = resource === "memory" ? "memory" : "ephemeral-storage";
  return Number(podResources(spec, "with overhead").requests.get(name) ?? 0n) / nanosPerUnit;
}

/** Unmeasured, over its request, of low priority, far over its request. */
function byExcess(a: RankKeys, b: RankKeys): number {
  return (
    unmeasuredFirst(a, b) ||
    Number(b.isOverRequest) - Number(a.isOverRequest) ||
    a.priority - b.priority ||
    (b.used ?? 0) - b.requested - ((a.used ?? 0) - a.requested)
  );
}

function byPriorityThenUse(a: RankKeys, b: RankKeys): number {
  return a.priority - b.priority || unmeasuredFirst(a, b) || (b.used ?? 0) - (a.used ?? 0);
}

function unmeasuredFirst(a: RankKeys, b: RankKeys): number {
  return Number(b.used === undefined) - Number(a.used === undefined);
}
