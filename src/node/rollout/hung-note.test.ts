import assert from "node:assert/strict";
import { test } from "node:test";
import { fileHeader } from "../../../test/support/load-config.ts";
import { RolloutWorld } from "../../../test/support/rollout-world.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { hungNoteName, readHungNote, writeHungNote } from "./hung-note.ts";

const minute = 60_000;
const notePath = `/store/${hungNoteName}`;
const file = (pods: number) => `${fileHeader}maxPods: ${pods}\n`;

/** A node with a good configuration that tries another one, and is killed during the trial. */
async function killedDuringTrial(): Promise<{ world: RolloutWorld; version: string }> {
  const world = new RolloutWorld(seededRandom(1));
  world.file = file(100);
  await world.start();
  await world.pass(2 * minute);
  await world.write(file(50));
  const version = world.keeper.state.trial?.version ?? "";
  await world.kill();
  return { world, version };
}

test("a process that was stuck during a trial is not given its configuration again", async () => {
  const { world, version } = await killedDuringTrial();
  world.disk.files.set(notePath, writeHungNote({ version, why: "it was stuck" }));
  await world.start();
  assert.equal(world.config?.kubelet.maxPods, 100);
  assert.equal(world.keeper.report?.error, "rolled back: it was stuck");
  assert.equal(world.disk.files.has(notePath), false, "the note has been heeded");
  assert.match(world.events.join(), /KubeletConfigRolledBack/);
});

for (const { name, note } of [
  { name: "none", note: undefined },
  { name: "half of one", note: '{"version":"' },
  { name: "one about something else", note: writeHungNote({ version: "another", why: "it was stuck" }) },
]) {
  test(`the note of a process that was killed: ${name}. Its trial goes on`, async () => {
    const { world } = await killedDuringTrial();
    if (note !== undefined) world.disk.files.set(notePath, note);
    await world.start();
    assert.equal(world.config?.kubelet.maxPods, 50);
    await world.pass(2 * minute);
    assert.equal(world.keeper.state.good?.version, world.keeper.running.id);
  });
}

test("what is no note is none", () => {
  for (const text of ["", "null", "[]", '{"version":1,"why":""}']) assert.equal(readHungNote(text), undefined, text);
});
