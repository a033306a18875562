import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { type IdentifiedPod, uidOf } from "../../ground/model/index.ts";
import { GracefulShutdown, type ShutdownLogind } from "./graceful-shutdown.ts";
import { ShutdownProgress } from "./shutdown-progress.ts";

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
  arePodsKnown = true;
  /** Pods that end as soon as they are told to. */
  pods: IdentifiedPod[] = [];
  tell: (begins: boolean) => void = () => {};
  readonly shutdown: GracefulShutdown;

  constructor() {
    this.shutdown = new GracefulShutdown([{ priority: 0, seconds: 20 }], {
      clock: this.clock,
      log: { ...silentLogger, warn: (message) => this.said.push(message), error: (message) => this.said.push(message) },
      progress: this.progress,
      state: { load: async () => ({ startedAt: undefined, endedAt: undefined }), save: () => this.saving },
      logindAbsence: async () => this.absence,
      openLogind: async () => this.#logind(),
      recordNodeEvent: () => {},
      recordPodEvent: () => {},
      arePodsKnown: () => this.arePodsKnown,
      activePods: () => this.pods,
      terminate: (uid) => {
        this.pods = this.pods.filter((pod) => uidOf(pod) !== uid);
      },
      stepOf: () => undefined,
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
      isPreparing: async () => false,
      inhibit: async () => {
        this.held++;
        return { [Symbol.dispose]: () => void this.held-- };
      },
      onPrepareForShutdown: (listener) => {
        this.tell = listener;
      },
      onRestart: () => {},
      onEnd: () => {},
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
