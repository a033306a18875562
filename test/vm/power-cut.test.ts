// The power fails at any moment: no state file is torn, nothing that was acknowledged is lost, every pod comes back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { acknowledgedObjects, installChurn, startChurn, storedObjects } from "./machine/churn.ts";
import { diskReport } from "./machine/disk-after-cut.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { progress } from "./machine/progress.ts";
import { savedFiles, saveFiles } from "./machine/saved-files.ts";
import { copyStateFilesAtBoot, stateFilesReport } from "./machine/state-files.ts";

const cuts = Number(process.env["NODELET_VM_POWER_CUTS"] ?? 2);
const seed = Number(process.env["NODELET_VM_SEED"] ?? 1);
const random = seededRandom(seed);
const never = new AbortController().signal;
/** Long enough for several pods to come and go while everything is being written. */
const longestChurnMs = 25_000;
/** About as long as services and pods take to come back. */
const longestRecoveryMs = 40_000;
/** Moments of each churn at which the disk is also read as a cut would leave it. A boot takes far longer. */
const looksPerChurn = 10;
const staticPods = ["first", "second"];

let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "power cuts", volatileDisks: true, extraDisksMb: [32, 1] });
});
after(() => machine?.[Symbol.asyncDispose]());

test("a file is there, whole, when the power fails right after it was saved, and would not be without its syncs", async () => {
  await saveFiles(machine);
  await machine.powerCut();
  await machine.boot();
  assert.deepEqual(await savedFiles(machine), {
    "flushed block": true,
    "unflushed block": false,
    "saved private": true,
    "saved replaced": true,
    "unsynced private": false,
    "unsynced replaced": false,
  });
});

test(`${cuts} power cuts while pods come and go (seed ${seed})`, async () => {
  agent = await GuestAgent.start(machine, { api: true });
  await installChurn(machine);
  await copyStateFilesAtBoot(machine);
  await agent.putStaticPods(staticPods.map((name) => busyboxPod(name, idleScript)));
  await agent.untilReady(staticPods.map((name) => `${name}-vm`));
  const totals = { files: 0, objects: 0, lostBlocks: 0, looks: 0 };
  let restarts = await agent.restartCounts();
  const check = async (): Promise<void> => {
    const { files, objects } = await assertUnharmed();
    restarts = await assertCountedOn(restarts);
    totals.files += files;
    totals.objects += objects;
  };
  const look = async (number: number): Promise<void> => {
    const { count, problems, objects } = await diskReport(machine, survivesCut(number));
    assert.deepEqual(problems, [], "lost if the power had failed");
    totals.files += count;
    totals.objects += objects;
    totals.looks++;
  };
  for (let cut = 1; cut <= cuts; cut++) {
    // One in three hits the machine while it comes up from the cut before.
    const isComingUp = cut > 1 && random() < 1 / 3;
    if (!isComingUp && cut > 1) await check();
    if (!isComingUp) await startChurn(machine, cut);
    for (let number = 0; !isComingUp && number < looksPerChurn; number++) {
      await systemClock.sleep((random() * longestChurnMs) / looksPerChurn, never);
      await look(cut * 1000 + number);
    }
    const afterMs = random() * (isComingUp ? longestRecoveryMs : longestChurnMs);
    await systemClock.sleep(afterMs, never);
    const lostBlocks = await machine.powerCut(survivesCut(cut));
    totals.lostBlocks += lostBlocks;
    const moment = `${(afterMs / 1000).toFixed(1)} s into ${isComingUp ? "coming up" : "churn"}`;
    progress(`cut ${cut} of ${cuts}, ${moment}; ${lostBlocks} blocks were not flushed`);
    await machine.boot();
  }
  await check();
  const { files, objects, lostBlocks, looks } = totals;
  progress(`${cuts} cuts, ${lostBlocks} blocks lost, and ${looks} looks at what other cuts would leave`);
  progress(`${files} state files read, ${objects} acknowledged objects looked for: all there`);
});

/** A disk may have written none of its cache, all of it, or any part. */
function survivesCut(cut: number): () => boolean {
  // Numbers of its own: how many blocks there are must not move the moments of later cuts.
  const pick = seededRandom(seed + cut);
  const share = [0, 1, pick()][Math.floor(pick() * 3)] ?? 0;
  return () => pick() < share;
}

/** A container that ran when the power failed has been restarted; that is told, and no earlier restart is forgotten. */
async function assertCountedOn(before: ReadonlyMap<string, number>): Promise<ReadonlyMap<string, number>> {
  const now = await agent.restartCounts();
  for (const name of staticPods.map((pod) => `${pod}-vm`)) {
    assert.ok(
      (now.get(name) ?? 0) > (before.get(name) ?? 0),
      `restarts of ${name}: ${before.get(name)}, ${now.get(name)}`,
    );
  }
  return now;
}

async function assertUnharmed(): Promise<{ readonly files: number; readonly objects: number }> {
  const { count, problems } = await stateFilesReport(machine);
  assert.deepEqual(problems, [], "state files that can't be read");
  assert.ok(count > 0, "there are state files");
  await machine.until("agent and API server run", "systemctl is-active nodelet nodelet-api");
  const stored = await storedObjects(machine);
  const expected = await acknowledgedObjects(machine);
  assert.deepEqual(
    expected.filter((object) => !stored.has(object)),
    [],
    "objects that were acknowledged and are gone",
  );
  const podsOfApi = [...stored].flatMap((object) => /^pods (churn-.*)/.exec(object)?.[1] ?? []);
  const hasFlip = (await machine.attempt("test -e /etc/kubernetes/manifests/flip.json")).code === 0;
  const names = [...staticPods, ...(hasFlip ? ["flip"] : [])].map((name) => `${name}-vm`);
  await agent.untilReady([...names, ...podsOfApi]);
  // One sandbox and one container each: none was started twice.
  assert.equal((await agent.tasks()).size, 2 * (names.length + podsOfApi.length));
  assert.equal(await agent.property("NRestarts"), "0", "the agent started at the first try");
  return { files: count, objects: expected.length };
}
