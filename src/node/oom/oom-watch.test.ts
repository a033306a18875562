import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { until } from "../../../test/support/until.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { OomWatch } from "./oom-watch.ts";

const id = "a".repeat(64);

/** A kernel with a log, counters and containers. */
class Kernel implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly records: { seq: number; text: string }[] = [];
  readonly counters = new Map<string, number>();
  readonly said: string[] = [];
  readonly told: string[] = [];
  /** What the last agent has saved. */
  saved: number | undefined;
  kills = 0;
  reads = 0;
  isReadable = true;
  /** It writes faster than anybody reads. */
  isFlooded = false;
  loadProblem: Error | undefined;
  counterProblem: Error | undefined;
  machineProblem: Error | undefined;
  watch = this.#newWatch();
  #scope = new TaskScope();

  async start(): Promise<void> {
    const { watch } = this;
    const counters = (): Kernel["counters"] => {
      if (this.counterProblem !== undefined) throw this.counterProblem;
      return this.counters;
    };
    this.#scope.spawn("watch", (signal) => watch.run(counters, signal));
    await this.clock.advance(0);
  }

  /** Another agent on the same boot. */
  async restart(): Promise<void> {
    await this.#scope.stop();
    this.#scope = new TaskScope();
    this.watch = this.#newWatch();
    await this.start();
  }

  kill(groups: string, pid = 7): void {
    this.kills++;
    const head = "oom-kill:constraint=C,nodemask=(null),cpuset=/,mems_allowed=0";
    this.write("x invoked oom-killer: gfp_mask=0", `${head},${groups},task=x,pid=${pid},uid=0`);
  }

  write(...lines: readonly string[]): void {
    for (const text of lines) this.records.push({ seq: this.records.length, text });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
  }

  #newWatch(): OomWatch {
    const watch = new OomWatch({
      clock: this.clock,
      log: { ...silentLogger, warn: (message) => this.said.push(message), error: (message) => this.said.push(message) },
      openKernelLog: async () => {
        if (!this.isReadable) throw new Error("EPERM");
        let at = 0;
        return {
          read: (most) => {
            this.reads++;
            if (this.isFlooded) return Array.from({ length: most }, () => ({ seq: -1, text: "noise" }));
            const found = this.records.slice(at, at + most);
            at += found.length;
            return found;
          },
          [Symbol.asyncDispose]: async () => {},
        };
      },
      killsOfMachine: () => {
        if (this.machineProblem !== undefined) throw this.machineProblem;
        return this.kills;
      },
      seen: {
        load: async () => {
          if (this.loadProblem !== undefined) throw this.loadProblem;
          return this.saved;
        },
        save: async (seq) => {
          this.saved = seq;
        },
      },
      recordNodeEvent: ({ reason, message }) => this.told.push(`${reason}: ${message}`),
      onKill: () => {},
    });
    watch.containerKilled.on((known, kill) => this.told.push(`${known.slice(0, 1)}: ${kill?.process ?? "unknown"}`));
    return watch;
  }
}

const inContainer = `oom_memcg=/kubepods/pod1,task_memcg=/kubepods/pod1/${id}`;

test("the whole machine: an event of the Node, once, also across a restart of the agent", async () => {
  await using kernel = new Kernel();
  await kernel.start();
  kernel.kill("global_oom,task_memcg=/system.slice", 42);
  await kernel.clock.advance(10_000);
  const event = "SystemOOM: System OOM encountered, victim process: x, pid: 42";
  assert.deepEqual(kernel.told, [event]);
  await kernel.restart();
  await kernel.clock.advance(60_000);
  assert.deepEqual(kernel.told, [event]);
  kernel.kill("global_oom,task_memcg=/system.slice", 43);
  await kernel.clock.advance(10_000);
  assert.equal(kernel.told.length, 2);
});

test("a look that fails in a way that nobody thought of is not the last one", async () => {
  await using kernel = new Kernel();
  await kernel.start();
  kernel.machineProblem = new Error("EIO");
  await kernel.clock.advance(10_000);
  assert.deepEqual(kernel.said, ["Could not look for processes that were killed because memory ran out; trying again"]);
  kernel.machineProblem = undefined;
  kernel.kill("global_oom,task_memcg=/system.slice", 42);
  await kernel.clock.advance(10_000);
  assert.deepEqual(kernel.told, ["SystemOOM: System OOM encountered, victim process: x, pid: 42"]);
});

test("what was there before the node had an agent is history, of an earlier boot nothing is", async () => {
  await using fresh = new Kernel();
  fresh.kill("global_oom,task_memcg=/a");
  fresh.kill(inContainer);
  await fresh.start();
  assert.deepEqual(fresh.told, []);
  assert.equal(fresh.watch.wasKilled(id), true, "who it was is known all the same");
  await using booted = new Kernel();
  booted.saved = -1;
  booted.kill("global_oom,task_memcg=/a");
  await booted.start();
  assert.equal(booted.told.length, 1);
});

test("a container's death finds its reason at once, and is told once", async () => {
  await using kernel = new Kernel();
  await kernel.start();
  assert.equal(kernel.watch.wasKilled(id), false);
  kernel.kill(inContainer);
  assert.equal(kernel.watch.wasKilled(id), true);
  kernel.counters.set(id, 1);
  await kernel.clock.advance(30_000);
  assert.deepEqual(kernel.told, ["a: x"]);
});

test("nothing is read while the kernel kills nothing", async () => {
  await using kernel = new Kernel();
  await kernel.start();
  const before = kernel.reads;
  kernel.write(...Array.from({ length: 1_000 }, () => "noise"));
  await kernel.clock.advance(600_000);
  assert.equal(kernel.watch.wasKilled(id), false);
  assert.equal(kernel.reads, before);
});

test("without the kernel's log, the counters of running containers tell", async () => {
  await using kernel = new Kernel();
  kernel.isReadable = false;
  await kernel.start();
  kernel.kills = 1;
  kernel.counters.set(id, 1);
  kernel.watch.hasten();
  await kernel.clock.advance(0);
  assert.deepEqual(kernel.told, ["a: unknown"]);
  assert.equal(kernel.watch.wasKilled(id), true);
  assert.equal(kernel.said.length, 1);
  await kernel.clock.advance(60_000);
  assert.equal(kernel.told.length, 1);
});

test("a log that does not end keeps nobody from the counters, and is read on later", async () => {
  await using kernel = new Kernel();
  await kernel.start();
  kernel.isFlooded = true;
  kernel.kill(inContainer);
  kernel.counters.set(id, 1);
  await kernel.clock.advance(10_000);
  await until("the counters were looked at", () => kernel.told.length > 0);
  assert.deepEqual(kernel.told, ["a: unknown"]);
  kernel.isFlooded = false;
  kernel.kill("global_oom,task_memcg=/system.slice", 42);
  await kernel.clock.advance(10_000);
  assert.deepEqual(kernel.told.slice(1), ["SystemOOM: System OOM encountered, victim process: x, pid: 42"]);
});

test("what was saved can't be read: what is there is history, and the watch goes on", async () => {
  await using kernel = new Kernel();
  kernel.loadProblem = new Error("EISDIR");
  kernel.kill("global_oom,task_memcg=/a");
  await kernel.start();
  kernel.kill("global_oom,task_memcg=/a", 43);
  await kernel.clock.advance(10_000);
  assert.deepEqual(kernel.told, ["SystemOOM: System OOM encountered, victim process: x, pid: 43"]);
});

test("a cgroup that goes while it is looked at does not end the watch", async () => {
  await using kernel = new Kernel();
  await kernel.start();
  kernel.counterProblem = new Error("ENOENT: no such file or directory, stat");
  kernel.kills++;
  await kernel.clock.advance(10_000);
  assert.deepEqual(kernel.told, []);
  assert.ok(
    kernel.said.some((message) => message.startsWith("Not all containers")),
    kernel.said.join(),
  );
  kernel.counterProblem = undefined;
  kernel.counters.set(id, 1);
  await kernel.clock.advance(10_000);
  await until("it is told", () => kernel.told.length === 1);
});
