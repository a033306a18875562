import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Hint, Hints } from "./hints.ts";
import { type MergeSettings, mergeHints } from "./merge-hints.ts";
import { compareMasks, NumaNodes, widthOf } from "./numa-nodes.ts";

/** "0p 01": nodes by their digits, p for preferred. */
function hints(text: string): readonly Hint[] {
  return text.split(" ").map((word) => ({
    nodes: [...word.replace("p", "")].reduce((mask, digit) => mask | (1 << Number(digit)), 0),
    isPreferred: word.endsWith("p"),
  }));
}

function opinions(lists: Readonly<Record<string, string | null>>): readonly Hints[] {
  return Object.entries(lists).map(([resource, text]) => {
    if (text === null) return new Map();
    return new Map([[resource, text === "" ? [] : hints(text)]]);
  });
}

function shown({ nodes, isPreferred }: Hint, nodeCount: number): string {
  const digits = Array.from({ length: nodeCount }, (_, id) => id).filter((id) => ((nodes ?? 0) >> id) & 1);
  return `${nodes === undefined ? "any" : digits.join("")}${isPreferred ? "p" : ""}`;
}

const policies = ["best-effort", "restricted", "single-numa-node"] as const;

function settings(policy: MergeSettings["policy"], nodeCount: number, compareSets = compareMasks): MergeSettings {
  return { policy, allNodes: 2 ** nodeCount - 1, compareSets };
}

describe("worked merges", () => {
  // What comes out, and which policies take it: b(est-effort), r(estricted), s(ingle-numa-node).
  for (const [lists, merged, single, takers, nodeCount = 2] of [
    [{ dev: "0p 01", cpu: "0p 1p 01" }, "0p", "0p", "brs"],
    [{ dev: "0p 01", cpu: "1p 01" }, "0", "any", "b"],
    [{ dev: "0p 1p 01", cpu: "01p" }, "01", "any", "b"],
    [{ dev: "01p", cpu: "01p" }, "01p", "any", "br"],
    [{ dev: null, cpu: null }, "01p", "anyp", "brs"],
    [{ cpu: "" }, "01", "any", "b"],
    [{ cpu: "01" }, "01", "any", "b"],
    [{ cpu: "0p" }, "0p", "anyp", "brs", 1],
    [{ dev: "1p", cpu: "0p", mem: "0p 1p" }, "01", "any", "b"],
    [{ a: "012 013", b: "01 23" }, "01", "any", "b", 4],
    [{ cpu: "02p 03p 12p 23p" }, "02p", "any", "br", 4],
  ] as const) {
    test(JSON.stringify(lists), () => {
      for (const policy of policies) {
        const { hint, admits } = mergeHints(opinions(lists), settings(policy, nodeCount));
        assert.equal(shown(hint, nodeCount), policy === "single-numa-node" ? single : merged, policy);
        assert.equal(admits, takers.includes(policy[0] ?? ""), policy);
      }
    });
  }
});

test("all ways one by one come to the same", () => {
  const hint = fc.record({
    nodes: fc.option(fc.integer({ min: 1, max: 7 }), { nil: undefined }),
    isPreferred: fc.boolean(),
  });
  const list = fc.array(hint, { maxLength: 5 });
  fc.assert(
    fc.property(fc.array(list, { maxLength: 4 }), fc.constantFrom(...policies), (lists, policy) => {
      const given = lists.map((own, index) => new Map([[`resource ${index}`, own]]));
      const { hint: merged, admits } = mergeHints(given, settings(policy, 3));
      assert.deepEqual({ ...merged, admits }, oneByOne(lists, policy));
    }),
    { numRuns: 3000 },
  );
});

/** As the rule is written down: the whole product, the better of two at a time. */
function oneByOne(lists: readonly (readonly Hint[])[], policy: MergeSettings["policy"]) {
  let all = lists.map((own) => (own.length === 0 ? [{ nodes: undefined, isPreferred: false }] : own));
  if (policy === "single-numa-node") {
    all = all.map((own) =>
      own.filter(({ nodes, isPreferred }) => isPreferred && (nodes === undefined || widthOf(nodes) === 1)),
    );
  }
  const widest = Math.max(
    0,
    ...all
      .map((own) => Math.min(...own.flatMap(({ nodes }) => (nodes === undefined ? [] : [widthOf(nodes)]))))
      .filter(Number.isFinite),
  );
  const ways = all.reduce<readonly (readonly Hint[])[]>(
    (sum, own) => sum.flatMap((way) => own.map((hint) => [...way, hint])),
    [[]],
  );
  let best: { nodes: number; isPreferred: boolean } | undefined;
  for (const way of ways) {
    const named = way.flatMap(({ nodes }) => nodes ?? []);
    const nodes = named.reduce((common, mask) => common & mask, 7);
    const isPreferred = way.every((hint) => hint.isPreferred) && new Set(named).size <= 1;
    if (nodes !== 0 && (best === undefined || isBetter({ nodes, isPreferred }, best, widest)))
      best = { nodes, isPreferred };
  }
  const found = best ?? { nodes: 7, isPreferred: false };
  const nodes = policy === "single-numa-node" && found.nodes === 7 ? undefined : found.nodes;
  return { nodes, isPreferred: found.isPreferred, admits: policy === "best-effort" || found.isPreferred };
}

function isBetter(
  candidate: { nodes: number; isPreferred: boolean },
  current: { nodes: number; isPreferred: boolean },
  widest: number,
): boolean {
  if (candidate.isPreferred !== current.isPreferred) return candidate.isPreferred;
  const isNarrower = compareMasks(candidate.nodes, current.nodes) < 0;
  if (candidate.isPreferred) return isNarrower;
  const [width, currentWidth] = [widthOf(candidate.nodes), widthOf(current.nodes)];
  if (currentWidth > widest) return isNarrower;
  if (currentWidth === widest) return width === widest && isNarrower;
  if (width > widest) return false;
  return width === currentWidth ? isNarrower : width > currentWidth;
}

test("sets of nodes: the small ones first, in order", () => {
  const nodes = new NumaNodes([4, 0, 2]);
  assert.deepEqual(
    nodes.sets().map((mask) => nodes.idsOf(mask).join(",")),
    ["0", "2", "4", "0,2", "0,4", "2,4", "0,2,4"],
  );
  assert.equal(nodes.maskOf([2, 4, 9]), 0b110);
  assert.throws(() => new NumaNodes(Array.from({ length: 17 }, (_, id) => id)).sets(), /too many sets/);
});
