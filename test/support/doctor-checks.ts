import assert from "node:assert/strict";
import { test } from "node:test";
import type { Judgement } from "../../src/beside/doctor/check.ts";
import type { Facts, FactValues } from "../../src/beside/doctor/facts.ts";
import { checkGroups } from "../../src/beside/doctor/groups.ts";
import { labFacts, labSelf, type SetUp } from "./doctor-lab.ts";

export const member: SetUp = { argv: ["--kubeconfig=/etc/kubernetes/kubelet.conf"] };
export const standAlone: SetUp = { argv: [] };
export const dayMs = 86_400_000;
export const checks = new Map(checkGroups.flatMap((group) => group.checks.map((check) => [check.id, check])));

export async function look(
  id: string,
  change: (facts: Facts) => object = () => ({}),
  setUp = member,
): Promise<Judgement> {
  const facts = await labFacts(setUp);
  const changed = Object.entries(change(facts)).map(([name, value]) => [name, { value }]);
  return checks.get(id)?.look({ ...facts, ...Object.fromEntries(changed) }) ?? assert.fail(`there is no ${id}`);
}

/** Another value of one piece, as it is in the lab but for some fields. */
export function but<Name extends keyof FactValues>(name: Name, fields: object): (facts: Facts) => object {
  return (facts) => {
    const fact = facts[name];
    return { [name]: { ...("value" in fact ? (fact.value as object) : {}), ...fields } };
  };
}

export const agent = (self: Parameters<typeof labSelf>[1]) => but("agent", { self: labSelf(true, self) });
export const pods = (...list: readonly object[]) =>
  but("pods", { pods: list.map((each) => ({ metadata: { namespace: "default", name: "web", uid: "u" }, ...each })) });
export const log = (...texts: readonly string[]) =>
  but("kernelLog", { records: texts.map((text) => ({ agoMs: 60_000, text })) });
export const api = (fields: object) => but("api", fields);
export const answer = (fields: object) => (facts: Facts) => {
  const { value } = facts.api as { readonly value: FactValues["api"] };
  return { api: { ...value, answer: { ...value?.answer, ...fields } } };
};
export const same = (sameMachines: FactValues["sameMachines"]) => () => ({ sameMachines });
export const settings = (fields: object) => (facts: Facts) => {
  const { value } = facts.kernel as { readonly value: FactValues["kernel"] };
  return { kernel: { ...value, settings: { ...value.settings, ...fields } } };
};

export const allControllers = ["cpu", "cpuset", "pids", "memory", "io", "hugetlb"];

export type Row = readonly [
  what: string,
  id: string,
  state: Judgement["state"],
  seen: RegExp,
  change?: ((facts: Facts) => object) | undefined,
  setUp?: SetUp,
];

/** A test for each row: this check says so, and what to do about it. */
export function testChecks(rows: readonly Row[]): void {
  for (const [what, id, state, seen, change, setUp] of rows) {
    test(`${id}: ${what}`, async () => {
      const found = await look(id, change, setUp);
      assert.equal(found.state, state, found.seen);
      assert.match(found.seen, seen);
      if (state === "fail" || state === "warn") assert.ok((found.fix ?? "") !== "", "no fix is said");
    });
  }
}
