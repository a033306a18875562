// Claims over lives of pods, drivers and agents in any order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gpu, inWorld, nic } from "../../../../test/support/claim-tests.ts";
import { claimingPod, type ScriptedDriver, timedOut } from "../../../../test/support/claim-world.ts";
import { seededRandom } from "../../../../test/support/seeded-random.ts";
import type { ClaimAnswer, ClaimRef } from "../../../connections/plugins/index.ts";
import type { IdentifiedPod, PodUid } from "../../../ground/model/index.ts";
import { decodeClaimFile } from "./claim-file.ts";

async function anyOrder(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
  await inWorld(async (world) => {
    const claims = { one: [gpu], two: [gpu, nic], three: [nic] } as const;
    const podNames = ["a", "b", "c"];
    for (const driver of [gpu, nic]) world.driver(driver);
    for (const [name, drivers] of Object.entries(claims)) world.allocate(name, drivers, podNames);
    const wanted = new Map(
      podNames.map((name) => [
        name,
        claimingPod(
          name,
          Object.keys(claims).filter(() => random() < 0.6),
        ),
      ]),
    );
    const late: (() => void)[] = [];
    const hangsForLong = (
      method: string,
      claims: readonly ClaimRef[],
      driver: ScriptedDriver,
    ): Promise<ReadonlyMap<string, ClaimAnswer>> =>
      new Promise((resolve, reject) => {
        const call = driver.asked.length;
        late.push(() => {
          if (random() < 0.5 || driver.hasDoneSince(call, claims)) timedOut().catch(reject);
          else resolve(driver.does(method, claims));
        });
      });
    /** Pods whose containers run: by now or by an earlier agent. */
    const running = new Set<string>();
    const leaving = new Set<string>();
    const isPrepared = (): void => {
      for (const name of running) {
        for (const { resourceClaimName: claim = "" } of wanted.get(name)?.spec.resourceClaims ?? []) {
          for (const driver of claims[claim as keyof typeof claims]) {
            assert.ok(
              world.driver(driver).prepared.has(`uid-${claim}`),
              `seed ${seed}: ${claim} of ${name} at ${driver}`,
            );
          }
        }
      }
      if (world.file.text !== undefined) decodeClaimFile(world.file.text);
    };
    /** What each pod's worker is at; it does one thing after the other. */
    const atWork = new Map<string, { readonly given: AbortController; readonly ended: Promise<void> }>();
    const work = (name: string, does: (signal: AbortSignal) => Promise<void>): void => {
      const given = new AbortController();
      const agent = world.signal;
      agent.addEventListener("abort", () => given.abort(agent.reason));
      atWork.get(name)?.given.abort(new DOMException("something else is to be done", "AbortError"));
      const before = atWork.get(name)?.ended;
      const ended = Promise.resolve(before)
        .then(() => does(given.signal))
        .catch(() => undefined);
      atWork.set(name, { given, ended });
    };
    const start = (name: string): void => {
      if (leaving.has(name)) return;
      work(name, async (signal) => {
        await world.manager.prepare(wanted.get(name) as IdentifiedPod, running.has(name), signal);
        if (!signal.aborted) running.add(name);
      });
    };
    const stop = (name: string): void => {
      leaving.add(name);
      work(name, async (signal) => {
        // Its containers have stopped by then.
        running.delete(name);
        await world.manager.release(name as PodUid, signal);
        if (!signal.aborted) leaving.delete(name);
      });
    };
    for (let step = 0; step < 40; step++) {
      const name = pick(podNames);
      const action = random();
      if (action < 0.4) start(name);
      else if (action < 0.65) stop(name);
      else if (action < 0.75) {
        const driver = world.driver(pick([gpu, nic]));
        const late: ScriptedDriver["behave"] = (method, claims) => hangsForLong(method, claims, driver);
        driver.behave = pick([() => undefined, timedOut, late]);
      } else if (action < 0.8) await world.restart(random() < 0.5);
      else if (action < 0.85) late.shift()?.();
      else world.file.land();
      for (let turn = Math.floor(random() * 20); turn > 0; turn--) await Promise.resolve();
      isPrepared();
    }
    await world.restart(random() < 0.5);
    for (const driver of [gpu, nic]) world.driver(driver).behave = () => undefined;
    for (const timeOut of late) timeOut();
    await world.settle();
    for (const name of podNames) stop(name);
    for (let round = 0; round < 20 && leaving.size > 0; round++) await world.settle();
    await world.settle();
    assert.deepEqual([...running, ...world.driver(gpu).prepared, ...world.driver(nic).prepared], [], `seed ${seed}`);
    assert.deepEqual([...world.manager.state], [], `seed ${seed}`);
    assert.equal(decodeClaimFile(world.file.text ?? "").size, 0);
  });
}

test("whatever happens in whatever order: who runs has its claims, and nothing is left behind", async () => {
  const base = Number(process.env["NODELET_SEED"] ?? Date.now() % 1e6);
  const runs = Number(process.env["NODELET_RUNS"] ?? 50);
  for (let run = 0; run < runs; run++) await anyOrder(base + run);
});
