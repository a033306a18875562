import assert from "node:assert/strict";
import { test } from "node:test";
import { fileHeader } from "../../../test/support/load-config.ts";
import { RolloutWorld } from "../../../test/support/rollout-world.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";

const minute = 60_000;
const file = (pods: number) => `${fileHeader}maxPods: ${pods}\n`;

/** As on a disk that said that it had written what it had not. */
function tearLastState(world: RolloutWorld): void {
  const { files } = world.disk;
  const states = ["/store/state-a.json", "/store/state-b.json"].map((path) => {
    const text = files.get(path) ?? "{}";
    return { path, text, sequence: Number(JSON.parse(text).sequence ?? 0) };
  });
  const [last] = states.sort((one, other) => other.sequence - one.sequence);
  assert.ok(last);
  files.set(last.path, last.text.slice(0, last.text.length / 2));
}

test("the state before the last one, too, finds what it goes back to", async () => {
  const world = new RolloutWorld(seededRandom(1));
  world.file = file(100);
  await world.start();
  await world.pass(2 * minute);
  // The old one is not known to be anything any more once this one is good.
  await world.write(file(50));
  await world.pass(2 * minute);
  await world.kill();
  tearLastState(world);
  world.file = `${fileHeader}port: 666\n`;
  await world.start();
  await world.pass(3 * minute);
  assert.equal(world.config?.kubelet.port, 10250);
  assert.match(world.keeper.report?.error ?? "", /^rolled back: /);
});
