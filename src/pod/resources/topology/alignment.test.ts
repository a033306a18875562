import assert from "node:assert/strict";
import { test } from "node:test";
import { testPod } from "../../../../test/support/pods.ts";
import { Alignment, type AlignmentSettings } from "./alignment.ts";
import { AllocationError, type Hint, type HintProvider } from "./hints.ts";
import { NumaNodes } from "./numa-nodes.ts";

const nodes = new NumaNodes([0, 1, 2, 3]);
/** 0 and 1 are near each other, so are 2 and 3. */
const distances = nodes.ids.map((from) => nodes.ids.map((to) => (from === to ? 10 : from >> 1 === to >> 1 ? 11 : 12)));

/** A provider with these hints; what it was told to give, and what it gave stands after all. */
function provider(hints: readonly Hint[] | undefined, fails = false) {
  const given: string[] = [];
  const asked: HintProvider = {
    hints: () => new Map([["thing", hints]]),
    podHints: () => new Map([["thing", hints]]),
    allocate: (_pod, { name }, hint) => {
      given.push(`${name} ${hint.nodes === undefined ? "any" : nodes.idsOf(hint.nodes).join("")}`);
      if (fails) throw new AllocationError("UnexpectedAdmissionError", "nothing left");
    },
    mark: () => {
      const before = given.length;
      return () => given.splice(before);
    },
  };
  return { asked, given };
}

const preferred = (...sets: readonly (readonly number[])[]): readonly Hint[] =>
  sets.map((ids) => ({ nodes: nodes.maskOf(ids), isPreferred: true }));

const align = (settings: Partial<AlignmentSettings>, ...providers: readonly HintProvider[]): Alignment =>
  new Alignment({ policy: "none", scope: "container", prefersClosest: false, ...settings }, nodes, {
    providers,
    distances,
  });

const pairs = preferred([0, 2], [0, 3], [1, 2], [2, 3]);

for (const policy of ["best-effort", "restricted"] as const) {
  for (const [prefersClosest, chosen] of [
    [false, "02"],
    [true, "23"],
  ] as const) {
    test(`${policy}: of pairs that are all as good, ${prefersClosest ? "those near each other" : "the lowest"}`, () => {
      const { asked, given } = provider(pairs);
      align({ policy, prefersClosest }, asked).give(testPod());
      assert.deepEqual(given, [`main ${chosen}`]);
    });
  }
}

test("policy none asks nobody where, and has everybody give", () => {
  const [one, two] = [provider([]), provider(preferred([3]))];
  align({}, one.asked, two.asked).give(testPod());
  assert.deepEqual([one.given, two.given], [["main any"], ["main any"]]);
});

test("a pod as a whole: one set for all its containers, init containers first", () => {
  const { asked, given } = provider(preferred([1]));
  const spec = { initContainers: [{ name: "init" }], containers: [{ name: "a" }, { name: "b" }] };
  align({ policy: "restricted", scope: "pod" }, asked).give(testPod(spec));
  assert.deepEqual(given, ["init 1", "a 1", "b 1"]);
});

test("one provider that can't give: nobody has given", () => {
  const [one, two] = [provider(undefined), provider(undefined, true)];
  assert.throws(() => align({}, one.asked, two.asked).give(testPod()), { reason: "UnexpectedAdmissionError" });
  assert.deepEqual([one.given, two.given], [[], []]);
});

test("what was given can be taken back", () => {
  const { asked, given } = provider(undefined);
  const takeBack = align({}, asked).give(testPod());
  assert.equal(given.length, 1);
  takeBack();
  assert.equal(given.length, 0);
});
