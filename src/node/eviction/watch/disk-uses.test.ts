import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { testPod } from "../../../../test/support/pods.ts";
import { never, silentLogger } from "../../../ground/base/index.ts";
import { type IdentifiedPod, uidOf } from "../../../ground/model/index.ts";
import { nothingHeld } from "../plan/usage.ts";
import { DiskUses } from "./disk-uses.ts";

const pods = (count: number, name: string): readonly IdentifiedPod[] =>
  Array.from({ length: count }, (_, index) => testPod({}, { name: `${name}-${index}`, uid: `${name}-${index}` }));
const held = (bytes: number) => ({
  disk: { layers: nothingHeld, logs: nothingHeld, ownVolumes: { bytes, inodes: 1 }, hostVolumes: nothingHeld },
  containers: [],
});

function node() {
  const clock = new FakeClock();
  const asked: string[] = [];
  const hung = new Map<string, () => void>();
  const uses = new DiskUses({
    clock,
    log: silentLogger,
    measure: async (pod) => {
      const { name } = pod.metadata;
      asked.push(name);
      // Not even an abort ends it.
      if (name.startsWith("hung")) await new Promise<void>((resolve) => hung.set(name, resolve));
      return held(7);
    },
  });
  const bytesOf = (pod: IdentifiedPod | undefined) => pod && uses.of(uidOf(pod))?.disk.ownVolumes.bytes;
  const measure = async (all: readonly IdentifiedPod[], ms: number): Promise<boolean> => {
    let isOver = false;
    void uses.measure(all, never).then(() => {
      isOver = true;
    });
    await clock.advance(ms);
    return isOver;
  };
  return { asked, hung, uses, bytesOf, measure };
}

test("pods on a disk that does not answer are given up on, and hide nobody; they are not asked twice meanwhile", async () => {
  const { asked, hung, uses, bytesOf, measure } = node();
  const [bad, good] = [pods(3, "hung"), pods(20, "good")];
  assert.equal(await measure([...bad, ...good], 2_000), true);
  assert.equal(uses.isUnderWay, false);
  assert.deepEqual(bad.map(bytesOf), [undefined, undefined, undefined]);
  assert.ok(good.every((pod) => bytesOf(pod) === 7));
  assert.equal(await measure([...bad, ...good], 0), true, "nobody waits for them again");
  assert.equal(asked.filter((name) => name.startsWith("hung")).length, 3);
  for (const answer of hung.values()) answer();
  await measure([], 0);
  assert.equal(await measure(bad, 2_000), true);
  assert.equal(asked.filter((name) => name.startsWith("hung")).length, 6, "until it has answered");
});

test("whoever was not come to in time counts as before, or as using nothing, and not as one that hides something", async () => {
  const { bytesOf, measure } = node();
  const [known, late] = [pods(1, "known"), pods(1, "late")];
  assert.equal(await measure(known, 0), true);
  assert.equal(await measure([...pods(100, "hung"), ...known, ...late], 12_000), true);
  assert.deepEqual([bytesOf(known[0]), bytesOf(late[0])], [7, 0]);
});
