// The power fails while the machine is being turned off and its pods end: no state file is torn, and every pod comes back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { agentFilesReport } from "./machine/disk-after-cut.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { progress } from "./machine/progress.ts";

const cuts = Number(process.env["NODELET_VM_POWER_CUTS"] ?? 2);
const seed = Number(process.env["NODELET_VM_SEED"] ?? 1);
const random = seededRandom(seed);
const never = new AbortController().signal;
/** Moments of each shutdown at which the disk is read as a cut would leave it; then comes the real one. */
const looksPerShutdown = 9;
/** From one moment to the next, at the most; a look takes some seconds itself. */
const longestPauseMs = 4_000;

const stubborn = "trap '' TERM; while :; do sleep 1; done";
const pods: readonly Pod[] = [
  pod("polite", idleScript, 0),
  pod("stubborn", stubborn, 0),
  pod("vital", stubborn, 2_000_001_000),
];
const names = ["polite-vm", "stubborn-vm", "vital-vm"];

function pod(name: string, script: string, priority: number): Pod {
  const made = busyboxPod(name, script);
  return { ...made, spec: { ...made.spec, priority, terminationGracePeriodSeconds: 300 } } as Pod;
}

let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "cut in a shutdown", volatileDisks: true });
  const config = { shutdownGracePeriod: "60s", shutdownGracePeriodCriticalPods: "20s" };
  agent = await GuestAgent.start(machine, { config });
  await agent.putStaticPods(pods);
  await agent.untilReady(names);
});
after(() => machine?.[Symbol.asyncDispose]());

test(`${cuts} power cuts while the machine turns off, and ${looksPerShutdown} looks before each (seed ${seed})`, async () => {
  let files = 0;
  for (let cut = 1; cut <= cuts; cut++) {
    await machine.until("the lock is held", "systemd-inhibit --list --no-legend | grep '^kubelet .*shutdown.*delay'");
    await machine.run("systemctl --no-block poweroff");
    for (let number = 0; number < looksPerShutdown; number++) {
      await systemClock.sleep(random() * longestPauseMs, never);
      const { count, problems } = await agentFilesReport(machine, survivesCut(cut * 1000 + number));
      assert.deepEqual(problems, [], "lost if the power had failed");
      files += count;
    }
    await systemClock.sleep(random() * longestPauseMs, never);
    const lostBlocks = await machine.powerCut(survivesCut(cut));
    const { count, problems } = await agentFilesReport(machine, () => true);
    assert.deepEqual(problems, [], "state files that can't be read");
    files += count;
    progress(`cut ${cut} of ${cuts}; ${lostBlocks} blocks were not flushed`);
    await machine.boot();
    await machine.until("the agent runs", "systemctl is-active nodelet");
    await agent.untilReady(names);
    // One sandbox and one container each: none was started twice.
    assert.equal((await agent.tasks()).size, 2 * names.length);
    assert.equal(await agent.property("NRestarts"), "0", "the agent started at the first try");
    for (const [name, { status }] of await agent.pods()) {
      assert.deepEqual([status?.phase, status?.reason], ["Running", undefined], name);
    }
  }
  assert.ok(files > 0);
  progress(`${cuts} cuts and ${cuts * looksPerShutdown} looks: ${files} state files read, all whole`);
});

/** A disk may have written none of its cache, all of it, or any part. */
function survivesCut(cut: number): () => boolean {
  const pick = seededRandom(seed + cut);
  const share = [0, 1, pick()][Math.floor(pick() * 3)] ?? 0;
  return () => pick() < share;
}
