// The power fails while the machine is being turned off and its pods end: no state file is lost or torn, and every pod comes
// back. A cut takes minutes, for its boot; so of every shutdown the disk is also read at other moments, as a cut would leave
// it: two cuts and nine moments before each are twenty.
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
    const before = await filesAtRest();
    await machine.run("systemctl --no-block poweroff");
    for (let number = 0; number < looksPerShutdown; number++) {
      await systemClock.sleep(random() * longestPauseMs, never);
      files += await unharmed(before, survivesCut(cut * 1000 + number));
    }
    await systemClock.sleep(random() * longestPauseMs, never);
    const lostBlocks = await machine.powerCut(survivesCut(cut));
    files += await unharmed(before, () => true);
    progress(`cut ${cut} of ${cuts}; ${lostBlocks} blocks were not flushed`);
    await machine.boot();
    await machine.until("the agent runs", "systemctl is-active nodelet");
    await untilAllRunOnce();
    assert.equal(await agent.property("NRestarts"), "0", "the agent started at the first try");
    for (const [name, { status }] of await agent.pods()) {
      assert.deepEqual([status?.phase, status?.reason], ["Running", undefined], name);
    }
  }
  assert.ok(files > 0);
  progress(`${cuts} cuts and ${cuts * looksPerShutdown} looks: ${files} state files read, all whole`);
});

test("the agent is killed while pods end: the machine turns off, and every pod comes back once", async () => {
  await machine.until("the lock is held", "systemd-inhibit --list --no-legend | grep '^kubelet .*shutdown.*delay'");
  await machine.run("systemctl --no-block poweroff");
  await machine.until(
    "pods end",
    `test $(ctr --namespace k8s.io tasks list | grep -c RUNNING) -lt ${2 * names.length}`,
  );
  await machine.run("systemctl kill --signal KILL nodelet");
  await machine.shutdown();
  const { count, problems } = await agentFilesReport(machine, () => true);
  assert.deepEqual(problems, [], "state files that can't be read");
  assert.ok(count > 0);
  await machine.boot();
  await machine.until("the agent runs", "systemctl is-active nodelet");
  await untilAllRunOnce();
});

/**
 * One sandbox and one container each: none is missing, and none was started twice. The agent shows its pods as they were
 * until it has looked at the runtime, which an emulated machine may come to late.
 */
async function untilAllRunOnce(): Promise<void> {
  const count = 2 * names.length;
  await machine.until("they run", `test $(ctr --namespace k8s.io tasks list | grep -c RUNNING) -ge ${count}`);
  await agent.untilReady(names);
  assert.equal((await agent.tasks()).size, count);
}

/** What the agent has kept before the machine turns off. */
async function filesAtRest(): Promise<readonly string[]> {
  await machine.run("sync");
  const { paths, problems } = await agentFilesReport(machine, () => true);
  assert.deepEqual(problems, [], "before the shutdown");
  assert.ok(paths.length > 0, "the agent keeps files");
  return paths;
}

/** Whether all that was kept is there after a cut now, and whole; how many files that are. */
async function unharmed(before: readonly string[], survives: () => boolean): Promise<number> {
  const { count, paths, problems } = await agentFilesReport(machine, survives);
  assert.deepEqual(problems, [], "state files that can't be read");
  const lost = before.filter((path) => !paths.includes(path));
  assert.deepEqual(lost, [], "state files that are gone");
  return count;
}

/** A disk may have written none of its cache, all of it, or any part. */
function survivesCut(cut: number): () => boolean {
  const pick = seededRandom(seed + cut);
  const share = [0, 1, pick()][Math.floor(pick() * 3)] ?? 0;
  return () => pick() < share;
}
