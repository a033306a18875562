import type { Hint, Hints } from "./hints.ts";
import { compareMasks, type NumaMask, widthOf } from "./numa-nodes.ts";

export type AlignmentPolicy = "none" | "best-effort" | "restricted" | "single-numa-node";

export interface MergeSettings {
  readonly policy: Exclude<AlignmentPolicy, "none">;
  readonly allNodes: NumaMask;
  /** Among sets of as many nodes, the better one comes first: below zero when that is `a`. */
  readonly compareSets: (a: NumaMask, b: NumaMask) => number;
}

export interface MergedHints {
  readonly hint: Hint;
  readonly admits: boolean;
}

/** What all providers can agree on, and whether the policy takes a pod on these terms. */
export function mergeHints(opinions: readonly Hints[], settings: MergeSettings): MergedHints {
  const { policy, allNodes } = settings;
  const lists = opinions.flatMap(listsOf);
  if (policy === "single-numa-node") {
    const single = lists.map((hints) =>
      hints.filter(({ nodes, isPreferred }) => isPreferred && (nodes === undefined || widthOf(nodes) === 1)),
    );
    const { nodes, isPreferred } = best(single, settings);
    const hint = { nodes: nodes === allNodes ? undefined : nodes, isPreferred };
    return { hint, admits: isPreferred };
  }
  const hint = best(lists, settings);
  return { hint, admits: policy === "best-effort" || hint.isPreferred };
}

/** One list of hints for each resource. Nobody's opinion fits anywhere, the impossible is nowhere preferred. */
function listsOf(hints: Hints): readonly (readonly Hint[])[] {
  if (hints.size === 0) return [[{ nodes: undefined, isPreferred: true }]];
  return [...hints.values()].map((list) => {
    if (list === undefined) return [{ nodes: undefined, isPreferred: true }];
    return list.length === 0 ? [{ nodes: undefined, isPreferred: false }] : list;
  });
}

/**
 * The best of all ways to take one hint from each list: the nodes that all hints of it have in common, preferred if each
 * of them is and all name the same nodes.
 */
function best(lists: readonly (readonly Hint[])[], { allNodes, compareSets }: MergeSettings): Hint {
  const [agreed] = agreements(lists, allNodes).sort((a, b) => compareMasksBy(compareSets, a, b));
  if (agreed !== undefined) return { nodes: agreed, isPreferred: true };
  const widest = Math.max(0, ...lists.map(narrowest));
  const [compromise] = overlaps(lists, allNodes).sort(
    (a, b) => remoteness(a, widest) - remoteness(b, widest) || compareMasksBy(compareSets, a, b),
  );
  return { nodes: compromise ?? allNodes, isPreferred: false };
}

/** The sets that every list prefers; who prefers any set agrees with all. */
function agreements(lists: readonly (readonly Hint[])[], allNodes: NumaMask): NumaMask[] {
  let agreed = new Set<NumaMask | undefined>([undefined]);
  for (const list of lists) {
    const next = new Set<NumaMask | undefined>();
    for (const { nodes, isPreferred } of list) {
      if (!isPreferred) continue;
      if (agreed.has(undefined)) next.add(nodes);
      if (nodes === undefined) for (const common of agreed) next.add(common);
      else if (agreed.has(nodes)) next.add(nodes);
    }
    agreed = next;
  }
  return [...agreed].map((nodes) => (nodes ?? allNodes) & allNodes).filter((nodes) => nodes !== 0);
}

/**
 * What hints, one of each list, have in common. There are as many ways to take them as the product of all lengths; but
 * what matters of those through the first lists are only the sets that they end in, so that is what is carried on.
 */
function overlaps(lists: readonly (readonly Hint[])[], allNodes: NumaMask): NumaMask[] {
  let reached: readonly NumaMask[] = [allNodes];
  for (const list of lists) {
    const next = new Set<NumaMask>();
    for (const { nodes } of list) for (const common of reached) next.add((nodes ?? allNodes) & common);
    reached = [...next];
  }
  return reached.filter((nodes) => nodes !== 0);
}

function narrowest(hints: readonly Hint[]): number {
  const widths = hints.flatMap(({ nodes }) => (nodes === undefined ? [] : [widthOf(nodes)]));
  return widths.length === 0 ? 0 : Math.min(...widths);
}

/** As near to the widest need as can be: first below it, and above it only where there is nothing else. */
function remoteness(nodes: NumaMask, widest: number): number {
  const width = widthOf(nodes);
  return width <= widest ? widest - width : 64 + width;
}

function compareMasksBy(compareSets: MergeSettings["compareSets"], a: NumaMask, b: NumaMask): number {
  return widthOf(a) - widthOf(b) || compareSets(a, b) || compareMasks(a, b);
}
