import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { type IdentifiedPod, uidOf } from "../../ground/model/index.ts";
import { GracefulShutdown, type ShutdownLogind } from "./graceful-shutdown.ts";
import { ShutdownProgress } from "./shutdown-progress.ts";
import { noShutdown, type ShutdownState, ShutdownStateFile } from "./state-file.ts";

/** A node without pods, and a logind of which the test says how it is. */
class Machine implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly scope = new TaskScope();
  readonly said: string[] = [];
  readonly progress = new ShutdownProgress();
  absence: string | undefined;
  maxDelayMs = 5_000;
  raises = 0;
  isRaised = true;
  held = 0;
  opened = 0;
  saving: Promise<void> = Promise.resolve();
  readonly saved: ShutdownState[] = [];
  inhibiting: Promise<void> = Promise.resolve();
  arePodsKnown = true;
  /** What the agent finds on its disk. */
  found = noShutdown;
  isPreparing = false;
  /** What comes on the bus right after the answer, before anybody has read that. */
  toldWhileAsked: boolean | undefined;
  /** False: pods outlast every grace. */
  doPodsEnd = true;
  /** Pods that end as soon as they are told to. */
  pods: IdentifiedPod[] = [];
  tell: (begins: boolean) => void = () => {};
  loseBus: () => void = () => {};
  readonly shutdown: GracefulShutdown;

  constructor() {
    this.shutdown = new GracefulShutdown([{ priority: 0, seconds: 20 }], {
      clock: this.clock,
      log: { ...silentLogger, warn: (message) => this.said.push(message), error: (message) => this.said.push(message) },
      progress: this.progress,
      state: {
        load: async () => this.found,
        save: async (state) => {
          await this.saving;
          this.saved.push(state);
        },
      },
      logindAbsence: async () => this.absence,
      openLogind: async () => this.#logind(),
      recordNodeEvent: () => {},
      recordPodEvent: () => {},
      arePodsKnown: () => this.arePodsKnown,
      activePods: () => this.pods,
      terminate: (uid) => {
        if (this.doPodsEnd) this.pods = this.pods.filter((pod) => uidOf(pod) !== uid);
      },
      stepOf: () => (this.doPodsEnd ? undefined : "terminating"),
      isReported: () => true,
      isNodeReported: () => true,
      mayComeBack: () => false,
      bringBack: () => {},
      onState: () => {},
    });
  }

  async start(): Promise<void> {
    const started = this.shutdown.start(this.scope);
    await this.clock.advance(10_000);
    await started;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
  }

  #logind(): ShutdownLogind {
    this.opened++;
    return {
      maxDelayMs: async () => this.maxDelayMs,
      raiseMaxDelay: async (seconds) => {
        this.raises++;
        if (this.isRaised) this.maxDelayMs = seconds * 1000;
      },
      isPreparing: async () => {
        const { isPreparing, toldWhileAsked } = this;
        this.toldWhileAsked = undefined;
        if (toldWhileAsked !== undefined) this.tell(toldWhileAsked);
        return isPreparing;
      },
      inhibit: async () => {
        await this.inhibiting;
        this.held++;
        return { [Symbol.dispose]: () => void this.held-- };
      },
      onPrepareForShutdown: (listener) => {
        this.tell = listener;
      },
      onRestart: () => {},
      onEnd: (listener) => {
        this.loseBus = () => listener(new Error("gone"));
      },
      close: () => {},
    };
  }
}

test("a machine without logind: said once, asked ever more rarely, and found when it comes", async () => {
  await using machine = new Machine();
  machine.absence = "there is no system bus";
  await machine.start();
  await machine.clock.advance(3_600_000);
  assert.deepEqual(machine.said, ["Graceful node shutdown is off: logind cannot be asked to wait for pods"]);
  assert.equal(machine.shutdown.report().problem, "there is no system bus");
  machine.absence = undefined;
  await machine.clock.advance(60_000);
  assert.deepEqual([machine.held, machine.shutdown.report().allowedSeconds], [1, 30]);
});

test("a logind that waits long enough is left as it is", async () => {
  await using machine = new Machine();
  machine.maxDelayMs = 60_000;
  await machine.start();
  assert.deepEqual([machine.raises, machine.held, machine.shutdown.report().allowedSeconds], [0, 1, 60]);
});

test("a logind that can't be made to wait longer: the lock is taken all the same, and it is said", async () => {
  await using machine = new Machine();
  machine.isRaised = false;
  await machine.start();
  assert.deepEqual([machine.raises, machine.held, machine.shutdown.report().allowedSeconds], [1, 1, 5]);
  assert.equal(machine.said.length, 1);
});

test("a disk that does not answer holds up the machine for two seconds at the most", async () => {
  await using machine = new Machine();
  await machine.start();
  machine.saving = new Promise(() => {});
  machine.tell(true);
  assert.equal(machine.progress.isUnderWay, true);
  await machine.clock.advance(2_500);
  assert.equal(machine.held, 0);
});

test("a source of pods that never speaks costs a quarter of the time; then those end that are known", async () => {
  await using machine = new Machine();
  machine.arePodsKnown = false;
  await machine.start();
  machine.pods = [testPod({}, { uid: "u" })];
  machine.tell(true);
  await machine.clock.advance(5_000);
  assert.deepEqual([machine.pods.length, machine.held], [1, 1]);
  await machine.clock.advance(4_000);
  assert.deepEqual([machine.pods.length, machine.held], [0, 0]);
  assert.deepEqual(machine.said, ["Not every pod is known; those that are end now"]);
});

for (const [isOfEarlierBoot, leastMs, mostMs] of [
  [false, 5_000, 15_000],
  [true, 25_000, 35_000],
] as const) {
  const whose = isOfEarlierBoot ? "the boot before shortens nothing" : "this very shutdown is gone on with";
  test(`an agent that starts while the machine turns off: what is noted of ${whose}`, async () => {
    await using machine = new Machine();
    const now = machine.clock.now();
    machine.found = { startedAt: now - 20_000, endedAt: undefined, isOfEarlierBoot };
    machine.isPreparing = true;
    machine.doPodsEnd = false;
    machine.pods = [testPod()];
    const started = machine.shutdown.start(machine.scope);
    await machine.clock.advance(leastMs);
    await started;
    assert.equal(machine.held, 1);
    await machine.clock.advance(mostMs - leastMs);
    assert.equal(machine.held, 0);
  });
}

test("a shutdown that was called off while no agent ran shortens none that comes later", async () => {
  await using machine = new Machine();
  machine.found = { startedAt: machine.clock.now(), endedAt: undefined, isOfEarlierBoot: false };
  machine.doPodsEnd = false;
  machine.pods = [testPod()];
  await machine.start();
  await machine.clock.advance(10_000);
  machine.isPreparing = true;
  machine.loseBus();
  await machine.clock.advance(20_000);
  assert.deepEqual([machine.progress.isUnderWay, machine.held], [true, 1], "all of its 30 seconds are still its own");
  await machine.clock.advance(20_000);
  assert.equal(machine.held, 0);
});

test("a shutdown that is called off and begins anew: what is noted is the new one", async () => {
  await using machine = new Machine();
  machine.doPodsEnd = false;
  machine.pods = [testPod()];
  await machine.start();
  machine.tell(true);
  await machine.clock.advance(1_000);
  machine.tell(false);
  machine.tell(true);
  const begunAt = machine.clock.now();
  await machine.clock.advance(1_000);
  assert.deepEqual(machine.saved.at(-1), { startedAt: begunAt, endedAt: undefined });
});

for (const begins of [true, false]) {
  test(`what logind tells is newer than what it answered: a shutdown that ${begins ? "begins" : "is called off"}`, async () => {
    await using machine = new Machine();
    machine.isPreparing = !begins;
    machine.toldWhileAsked = begins;
    machine.doPodsEnd = false;
    machine.pods = [testPod()];
    await machine.start();
    assert.deepEqual([machine.progress.isUnderWay, machine.held], [begins, 1]);
  });
}

test("a lock that comes when the agent has stopped is given back: the process may go on with another turn", async () => {
  await using machine = new Machine();
  await machine.start();
  machine.tell(true);
  await machine.clock.advance(1_000);
  assert.equal(machine.held, 0, "there was nobody to wait for");
  let come = (): void => {};
  machine.inhibiting = new Promise((resolve) => {
    come = resolve;
  });
  machine.tell(false);
  await machine.clock.advance(0);
  const stopped = machine.scope.stop();
  await machine.clock.advance(0);
  come();
  await stopped;
  assert.equal(machine.held, 0);
});

test("a lock that comes when all pods have ended already is given back: the machine waits for nothing", async () => {
  await using machine = new Machine();
  let come = (): void => {};
  machine.inhibiting = new Promise((resolve) => {
    come = resolve;
  });
  const started = machine.shutdown.start(machine.scope);
  await machine.clock.advance(1_000);
  machine.isPreparing = true;
  machine.tell(true);
  await machine.clock.advance(1_000);
  assert.notEqual(machine.saved.at(-1)?.endedAt, undefined, "it is over");
  come();
  await machine.clock.advance(10_000);
  await started;
  assert.equal(machine.held, 0);
  // The next one is waited for again.
  machine.isPreparing = false;
  machine.tell(false);
  await machine.clock.advance(1_000);
  assert.equal(machine.held, 1);
});

test("the state on disk knows its boot; of one that a Go kubelet has written the time tells", async () => {
  const directory = await mkdtemp(join(tmpdir(), "shutdown-state-"));
  try {
    const path = join(directory, "graceful_node_shutdown_state");
    const at = (id: string, seconds: number) => new ShutdownStateFile(path, { id, at: seconds * 1000 });
    await at("one", 1).save({ startedAt: 5_000, endedAt: undefined });
    const found = { startedAt: 5_000, endedAt: undefined };
    // A clock that was set meanwhile does not matter.
    assert.deepEqual(await at("one", 9).load(), { ...found, isOfEarlierBoot: false });
    assert.deepEqual(await at("two", 1).load(), { ...found, isOfEarlierBoot: true });
    await writeFile(path, '{"startTime":"1970-01-01T00:00:05Z","endTime":"0001-01-01T00:00:00Z"}');
    assert.deepEqual(await at("one", 4).load(), { ...found, isOfEarlierBoot: false });
    assert.deepEqual(await at("two", 6).load(), { ...found, isOfEarlierBoot: true });
  } finally {
    await rm(directory, { recursive: true });
  }
});
