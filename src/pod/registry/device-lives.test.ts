// Devices over random lives of pods, plugins and agents.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gpu, nic, wants } from "../../../test/support/device-tests.ts";
import { allocated, DeviceWorld, settleWorld } from "../../../test/support/device-world.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import type { PodUid } from "../../ground/model/index.ts";
import { encodeDeviceFile } from "../resources/devices/device-file.ts";

const sequences = Number(process.env["NODELET_SEQUENCES"] ?? 300);

test("over random lives no device is given twice, none is lost, and who runs keeps what he has", async () => {
  for (let sequence = 0; sequence < sequences; sequence++) {
    const random = seededRandom(20_26 + sequence);
    const pick = (below: number): number => Math.floor(random() * below);
    const life = new DeviceWorld(new FakeClock());
    const held = new Map<PodUid, string>();
    let names = 0;
    for (let step = 0; step < 25; step++) {
      const resource = pick(2) === 0 ? gpu : nic;
      switch (pick(9)) {
        case 0:
        case 1:
        case 2:
          life.add(wants(`p${names++}`, { [resource]: 1 + pick(2) }, { [gpu]: pick(2) }));
          break;
        case 3: {
          const uids = [...life.running.keys(), ...life.waiting.keys()];
          const uid = uids[pick(uids.length)];
          if (uid !== undefined) {
            life.remove(uid);
            held.delete(uid);
          }
          break;
        }
        case 4:
        case 5: {
          const devices = Array.from({ length: 2 + pick(4) }, (_, index) => `${resource[7]}${index}`);
          const plugin = life.offer(resource, devices, devices.slice(0, pick(2)));
          plugin.options = { preStartRequired: false, givesPreferences: pick(3) === 0 };
          plugin.prefers = async ({ available }) => [...available].reverse().slice(0, pick(3));
          const fault = pick(6);
          if (fault === 0) plugin.answer = () => new Promise(() => {});
          else if (fault === 1) plugin.answer = () => Promise.reject(new Error("refused"));
          else plugin.answer = async (ids) => allocated({ IDS: ids.join() });
          break;
        }
        case 6:
          life.withdraw(resource);
          break;
        case 7:
          await settleWorld(life, pick(2) === 0);
          await restartAtAnyWrite(life, pick(2) === 0);
          break;
        default:
          await settleWorld(life, pick(3) > 0);
      }
      for (const [uid, text] of check(life)) {
        assert.equal(text, held.get(uid) ?? text, `sequence ${sequence}: ${uid} has other devices than before`);
        held.set(uid, text);
      }
    }
    for (const uid of [...life.running.keys(), ...life.waiting.keys(), ...life.rejected.keys()]) life.remove(uid);
    await settleWorld(life);
    life.sweep();
    assert.equal(life.manager.state.size, 0, "all are free again");
    for (const resource of [gpu, nic]) {
      const devices = [`${resource[7]}0`, `${resource[7]}1`];
      life.offer(resource, devices).answer = async (ids) => allocated({ IDS: ids.join() });
      life.add(wants(`last-${resource}`, { [resource]: 2 }));
      await settleWorld(life);
      assert.deepEqual([...life.owners(resource).keys()].sort(), devices, `sequence ${sequence}: one is lost`);
    }
    await life.stop();
  }
});

/** Dies while a write is under way: who has what is afterwards as it was before the write, or as it wrote it. */
async function restartAtAnyWrite(life: DeviceWorld, cameThrough: boolean): Promise<void> {
  const entries = (text: string | undefined): unknown =>
    text === undefined ? null : (JSON.parse(text) as { Data: { PodDeviceEntries: unknown } }).Data.PodDeviceEntries;
  const written = entries(cameThrough ? (life.file.coming ?? life.file.text) : life.file.text);
  await life.restart(cameThrough, () => {
    assert.deepEqual(entries(encodeDeviceFile(life.manager.state, new Map())), written);
  });
}

/** What each pod that runs has. */
function check(life: DeviceWorld): ReadonlyMap<PodUid, string> {
  for (const resource of [gpu, nic]) {
    for (const [id, owners] of life.owners(resource))
      assert.equal(owners.length, 1, `${id} has ${owners.join(" and ")}`);
  }
  const has = new Map<PodUid, string>();
  for (const [uid, pod] of life.running) {
    const grants = pod.spec.containers.map(({ name, resources }) =>
      Object.entries(resources?.limits ?? {}).map(([resource, count]) => {
        const grant = life.manager.state.get(uid)?.get(name)?.get(resource);
        // Resources that nobody had offered when the pod came are not given.
        if (grant === undefined) return "-";
        assert.equal(grant.ids.length, Number(count));
        assert.ok(grant.response !== undefined);
        return grant.ids.join(",");
      }),
    );
    has.set(uid, JSON.stringify(grants));
  }
  return has;
}
