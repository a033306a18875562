import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { test } from "node:test";
import { FakeClock, settleFiles } from "../../../../test/support/fake-clock.ts";
import { never, onAbort, silentLogger, systemClock } from "../../../ground/base/index.ts";
import { EngineError, type EngineExec, type InspectedContainer } from "../engine/index.ts";
import { ShimMetrics } from "../metrics.ts";
import type { ShimContext } from "./context.ts";
import { execInContainer } from "./exec-sync.ts";
import type { ImageCache } from "./image-cache.ts";
import { Images } from "./images.ts";
import { Looks } from "./looks.ts";
import { withMountPoints } from "./mount-points.ts";
import { UnstartedContainers } from "./unstarted.ts";

/** An answer that never comes; whoever gives up is noted. */
function unanswered(left: string[]) {
  return (what: string, signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => {
      onAbort(signal, () => {
        left.push(what);
        reject(signal.reason);
      });
    });
}

for (const step of ["find", "createExec", "startExec"]) {
  test(`a command's time is over also where docker hangs: ${step}`, async () => {
    const clock = new FakeClock();
    const left: string[] = [];
    const hang = unanswered(left);
    const until = (here: string, signal: AbortSignal, value: string): Promise<string> =>
      here === step ? hang(here, signal) : Promise.resolve(value);
    const engine = {
      createExec: (_id: string, _body: object, signal: AbortSignal) => until("createExec", signal, "exec"),
      startExec: (_id: string, _tty: boolean, signal: AbortSignal) => until("startExec", signal, ""),
      inspectExec: (_id: string, signal: AbortSignal) => hang("inspectExec", signal),
    };
    const context = { engine, clock, log: silentLogger, signal: never } as unknown as ShimContext;
    const find = (signal: AbortSignal): Promise<string> => until("find", signal, "id");
    const running = execInContainer(context, find, ["true"], 3n, never);
    const failed = assert.rejects(running, { code: "DeadlineExceeded", message: /timeout 3s exceeded/ });
    await clock.advance(3_000);
    // What it started is to be ended, but not for as long as docker likes.
    await clock.advance(2_000);
    await failed;
    assert.deepEqual(left, [step]);
  });
}

for (const { running, until } of [
  { running: true, until: "Docker calls it running" },
  { running: false, until: "Docker has not begun" },
]) {
  test(`a command that has no process when its time is over is ended when it has one: ${until}`, async () => {
    const clock = new FakeClock(undefined, settleFiles);
    const child = spawn("sleep", ["1000"]);
    const ended = once(child, "exit");
    const engine = {
      createExec: async () => "exec",
      startExec: (_id: string, _tty: boolean, signal: AbortSignal) => unanswered([])("startExec", signal),
      inspectExec: async () =>
        clock.monotonic() < 20_000
          ? { running, exitCode: 0, pid: 0, containerId: "" }
          : { running: true, exitCode: 0, pid: child.pid, containerId: "" },
    };
    const context = { engine, clock, log: silentLogger, signal: never } as unknown as ShimContext;
    const failed = assert.rejects(
      execInContainer(context, async () => "id", ["sleep"], 1n, never),
      { code: "DeadlineExceeded" },
    );
    try {
      for (let second = 0; second < 30; second++) await clock.advance(1_000);
      await failed;
      assert.deepEqual(await Promise.race([ended, systemClock.sleep(10_000, never)]), [null, "SIGKILL"]);
    } finally {
      child.kill("SIGKILL");
    }
  });
}

/** A Docker whose command has closed its output at once, and is what it says it is. */
function quietCommand(exec: () => Partial<EngineExec>) {
  const engine = {
    createExec: async () => "exec",
    startExec: async () => new PassThrough().end(),
    // Every process has a cgroup with nothing in its name.
    inspectExec: async () => ({ running: true, exitCode: 0, pid: process.pid, containerId: "", ...exec() }),
  };
  const clock = new FakeClock(undefined, settleFiles);
  const context = { engine, clock, log: silentLogger, signal: never } as unknown as ShimContext;
  return { clock, run: (seconds: bigint) => execInContainer(context, async () => "id", ["daemon"], seconds, never) };
}

test("a command that has closed its output is waited for, and its own code told", async () => {
  const { clock, run } = quietCommand(() => (clock.monotonic() < 25_000 ? {} : { running: false, exitCode: 7 }));
  const running = run(0n);
  for (let second = 0; second < 30; second++) await clock.advance(1_000);
  assert.equal((await running).exitCode, 7);
});

test("a command that closes its output and goes on has no more time than others", async () => {
  // Whoever kills it finds no process.
  const { clock, run } = quietCommand(() => ({ pid: clock.monotonic() < 3_000 ? process.pid : 0 }));
  const failed = assert.rejects(run(3n), { code: "DeadlineExceeded" });
  for (let second = 0; second < 10; second++) await clock.advance(1_000);
  await failed;
});

test("no code is made up for a command that is gone, and of which docker does not tell", async () => {
  const { clock, run } = quietCommand(() => ({ pid: 0 }));
  const failed = assert.rejects(run(0n), { code: "Unavailable", message: /does not tell how the command ended/ });
  for (let second = 0; second < 30; second++) await clock.advance(1_000);
  await failed;
});

test("a pull of which nothing at all is heard is given up, and docker is left", async () => {
  const clock = new FakeClock();
  const left: string[] = [];
  const hang = unanswered(left);
  const engine = { pullImage: (_reference: object, signal: AbortSignal) => hang("pull", signal) };
  const settings = { pullProgressDeadlineMs: 60_000 };
  const images = new Images(
    { engine, clock, settings, metrics: new ShimMetrics(clock) } as unknown as ShimContext,
    {} as ImageCache,
  );
  const image = { image: "silent.example/a:1", annotations: {}, userSpecifiedImage: "", runtimeHandler: "" };
  const failed = assert.rejects(images.pull({ image, auth: undefined }, never), /no progress of the pull for 60 s/);
  await clock.advance(60_000);
  await failed;
  const leaving = new AbortController();
  const pulling = images.pull({ image, auth: undefined }, leaving.signal);
  leaving.abort();
  await assert.rejects(pulling, { name: "AbortError" });
  assert.deepEqual([left, clock.pendingTimers], [["pull", "pull"], 0]);
});

/** A Docker that tells of a container when the test says so. */
function slowDocker() {
  const tell = new Map<string, (outcome: InspectedContainer | Error) => void>();
  const inspectContainer = (id: string): Promise<InspectedContainer> =>
    new Promise((resolve, reject) => {
      tell.set(id, (outcome) => (outcome instanceof Error ? reject(outcome) : resolve(outcome)));
    });
  return { inspectContainer, tell };
}

const inState = (exitCode: number) =>
  ({ state: { running: false, finishedAt: 0n, exitCode, error: "" }, labels: {} }) as unknown as InspectedContainer;

test("a container whose start hangs keeps an answer about all of them waiting once, and for a second", async () => {
  const clock = new FakeClock();
  const docker = slowDocker();
  const unstarted = new UnstartedContainers(new Looks(docker, clock, never));
  const first = unstarted.step("hung", never);
  const good = unstarted.step("good", never);
  docker.tell.get("good")?.(inState(127));
  assert.equal(await good, "exited");
  await clock.advance(1_000);
  assert.equal(await first, "created");
  assert.equal(await unstarted.step("hung", never), "created", "at once");
  // Its start has failed in the end.
  docker.tell.get("hung")?.(inState(126));
  await clock.advance(0);
  const later = unstarted.step("hung", never);
  docker.tell.get("hung")?.(inState(126));
  assert.equal(await later, "exited");
  assert.equal(clock.pendingTimers, 0);
});

test("what was seen before a start is not told after it; one that is gone has ended", async () => {
  const docker = slowDocker();
  const unstarted = new UnstartedContainers(new Looks(docker, new FakeClock(), never));
  const made = { id: "a", name: "k8s_c_p_n_u_0", labels: { note: "kept" } };
  unstarted.made(made);
  assert.deepEqual([await unstarted.step("a", never), unstarted.startable("a")], ["created", made]);
  unstarted.forget("a");
  const before = unstarted.step("a", never);
  const answerBefore = docker.tell.get("a");
  unstarted.forget("a");
  const after = unstarted.step("a", never);
  docker.tell.get("a")?.(inState(1));
  answerBefore?.(inState(0));
  assert.deepEqual([await before, await after, await unstarted.step("a", never)], ["created", "exited", "exited"]);
  const gone = unstarted.step("b", never);
  docker.tell.get("b")?.(new EngineError(404, "No such container: b"));
  assert.equal(await gone, "exited");
  const broken = unstarted.step("c", never);
  docker.tell.get("c")?.(new EngineError(500, "RWLayer of container c is unexpectedly nil"));
  assert.equal(await broken, "created", "and the answer about all of them is given");
});

test("what docker misses is made, and nothing else; a complaint that stays is told", async () => {
  const directory = await mkdtemp(join(tmpdir(), "mount-points-"));
  const missing = (path: string) =>
    new EngineError(400, `invalid mount config for type "bind": bind source path does not exist: ${path}`);
  try {
    const wanted = join(directory, "a/b");
    const complaints = [missing(wanted)];
    const id = await withMountPoints([wanted], async () => {
      const complaint = complaints.shift();
      if (complaint !== undefined) throw complaint;
      return "made";
    });
    assert.deepEqual([id, await readdir(join(directory, "a"))], ["made", ["b"]]);
    const alien = join(directory, "alien");
    for (const path of [wanted, alien]) {
      const failing = withMountPoints([wanted], async () => {
        throw missing(path);
      });
      await assert.rejects(failing, /does not exist/);
    }
    assert.deepEqual(await readdir(directory), ["a"]);
  } finally {
    await rm(directory, { recursive: true });
  }
});
