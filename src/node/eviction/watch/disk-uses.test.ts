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
      if (name.startsWith("slow")) await clock.sleep(1_000, never);
      if (name.startsWith("lame")) await clock.sleep(3_000, never);
      if (name.startsWith("limping")) await clock.sleep(6_000, never);
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
  return { asked, clock, hung, uses, bytesOf, measure };
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
  assert.equal(await measure([...bad, ...good], 2_000), true);
  assert.equal(asked.filter((name) => name.startsWith("hung")).length, 6, "until it has answered");
});

test("a machine on which all take long: nobody looks unmeasurable for it but one that takes far longer than others", async () => {
  const { bytesOf, measure } = node();
  const [lame, limping, hung] = [pods(1, "lame"), pods(1, "limping"), pods(1, "hung")];
  const all = [...lame, ...limping, ...hung];
  assert.equal(await measure(all, 8_000), true);
  assert.deepEqual(all.map(bytesOf), [7, 7, undefined]);
});

test("a machine on which others are quick: one that is not is not waited for", async () => {
  const { bytesOf, measure } = node();
  const [quick, lame] = [pods(1, "quick"), pods(1, "lame")];
  assert.equal(await measure([...quick, ...lame], 2_000), true);
  assert.deepEqual([bytesOf(quick[0]), bytesOf(lame[0])], [7, undefined]);
});

test("whoever was not come to in time counts as before, or as using nothing, and not as one that hides something", async () => {
  const { bytesOf, measure } = node();
  const [known, late] = [pods(1, "known"), pods(1, "late")];
  assert.equal(await measure(known, 0), true);
  assert.equal(await measure([...pods(100, "hung"), ...known, ...late], 12_000), true);
  assert.deepEqual([bytesOf(known[0]), bytesOf(late[0])], [7, 0]);
});

test("two who want to know at the same time, as a dry run beside the real one: nobody looks unmeasurable for it", async () => {
  const { clock, uses, bytesOf, asked } = node();
  const slow = pods(3, "slow");
  const both = Promise.all([uses.measure(slow, never), uses.measure(slow, never)]);
  await clock.advance(500);
  assert.equal(uses.isUnderWay, true);
  await clock.advance(1_000);
  await both;
  assert.deepEqual(slow.map(bytesOf), [7, 7, 7]);
  assert.equal(asked.length, 3, "each is measured once");
});

test("who breaks off, as a dry run that nobody waits for, leaves no half of the truth behind", async () => {
  const { clock, uses, bytesOf } = node();
  const slow = pods(20, "slow");
  const gone = new AbortController();
  const broken = assert.rejects(uses.measure(slow, gone.signal));
  const joined = uses.measure(slow, never);
  await clock.advance(500);
  gone.abort(new Error("nobody waits any more"));
  await broken;
  await joined;
  assert.equal(uses.areNewerThan(-1), false);
  assert.equal(uses.isUnderWay, false);
  const again = uses.measure(slow, never);
  await clock.advance(5_000);
  await again;
  assert.ok(slow.every((pod) => bytesOf(pod) === 7));
});

test("a pod that came after the others were measured holds nothing yet; before anybody was measured, nobody knows", async () => {
  const { bytesOf, measure } = node();
  const [late] = pods(1, "late");
  assert.equal(bytesOf(late), undefined);
  await measure(pods(2, "good"), 0);
  assert.equal(bytesOf(late), 0);
});
