import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { access, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { test } from "node:test";
import { FakeClock, settleFiles } from "../../../test/support/fake-clock.ts";
import { withoutDescriptors } from "../../../test/support/without-descriptors.ts";
import { type Logger, silentLogger, TaskScope } from "../../ground/base/index.ts";
import type { PodUid } from "../../ground/model/index.ts";
import { PodCheckpointFiles } from "./pod-checkpoint.ts";

const uid = "uid-1" as PodUid;

interface Context {
  readonly clock: FakeClock;
  /** What was synced, in order. */
  readonly synced: string[];
  /** What a sync takes. */
  disk: (path: string) => Promise<void>;
  /** Called when something is logged as an error. */
  onError: () => void;
}

async function withCheckpoints(
  work: (checkpoints: PodCheckpointFiles, podsDir: string, context: Context) => Promise<void>,
): Promise<void> {
  const podsDir = await mkdtemp(join(tmpdir(), "nodelet-checkpoints-"));
  await using scope = new TaskScope();
  const clock = new FakeClock();
  const context: Context = { clock, synced: [], disk: async () => {}, onError: () => {} };
  const sync = async (path: string): Promise<void> => {
    await context.disk(path);
    context.synced.push(relative(podsDir, path));
  };
  try {
    const log: Logger = Object.assign(Object.create(silentLogger), { error: () => context.onError() });
    await work(new PodCheckpointFiles({ podsDir, clock, scope, log, sync }), podsDir, context);
  } finally {
    await scope.stop();
    await rm(podsDir, { recursive: true });
  }
}

test("what was saved last is what the next run loads", () =>
  withCheckpoints(async (checkpoints, podsDir) => {
    assert.deepEqual(checkpoints.load(uid), {});
    await Promise.all(["Pending", "Running", "Succeeded"].map((phase) => checkpoints.save(uid, { status: { phase } })));
    assert.deepEqual(checkpoints.load(uid), { status: { phase: "Succeeded" } });
    assert.deepEqual(await readdir(join(podsDir, uid)), ["nodelet.json"]);
  }));

test("what is newer is written though what was before it could not be", () =>
  withCheckpoints(async (checkpoints, podsDir, context) => {
    const inTheWay = join(podsDir, uid);
    await writeFile(inTheWay, "");
    context.onError = () => rmSync(inTheWay);
    const earlier = checkpoints.save(uid, { status: { phase: "Running" } });
    // Its writing has begun: nothing can take its place any more.
    await Promise.resolve();
    await Promise.all([earlier, checkpoints.save(uid, { status: { phase: "Failed" } })]);
    assert.deepEqual(checkpoints.load(uid), { status: { phase: "Failed" } });
  }));

test("what could not be written is written when there is room again, though nobody hands it in anew", () =>
  withCheckpoints(async (checkpoints, podsDir, context) => {
    let errors = 0;
    context.onError = () => void errors++;
    const gone = "uid-2" as PodUid;
    // No directory can be made where there is a file.
    for (const each of [uid, gone]) {
      await writeFile(join(podsDir, each), "");
      await checkpoints.save(each, { status: { phase: "Succeeded" } });
    }
    await context.clock.advance(65_000);
    await settleFiles();
    assert.equal(errors, 2, "said once for each");
    await checkpoints.forget(gone);
    for (const each of [uid, gone]) rmSync(join(podsDir, each));
    await context.clock.advance(30_000);
    await settleFiles();
    assert.deepEqual(checkpoints.load(uid), { status: { phase: "Succeeded" } });
    assert.deepEqual(await readdir(podsDir), [uid], "nothing of a pod that was forgotten");
  }));

test("a file that is damaged counts as empty", () =>
  withCheckpoints(async (checkpoints, podsDir) => {
    await checkpoints.save(uid, { status: { phase: "Running" } });
    const file = join(podsDir, uid, "nodelet.json");
    for (const text of ["", "{", "null", "7", (await readFile(file, "utf8")).slice(0, -3)]) {
      await writeFile(file, text);
      assert.deepEqual(checkpoints.load(uid), {}, text);
    }
  }));

test("a file that can't be read for want of descriptors is not taken for empty", () =>
  withCheckpoints(async (checkpoints) => {
    await checkpoints.save(uid, { status: { phase: "Succeeded" } });
    {
      using _ = withoutDescriptors();
      assert.throws(() => checkpoints.load(uid), /Cannot read the pod's checkpoint now: EMFILE/);
    }
    assert.deepEqual(checkpoints.load(uid), { status: { phase: "Succeeded" } });
  }));

test("nothing is written any more once a pod is forgotten", () =>
  withCheckpoints(async (checkpoints, podsDir) => {
    for (let round = 0; round < 100; round++) {
      const first = checkpoints.save(uid, { status: { phase: "Running", message: String(round) } });
      // A different moment of the writing each time.
      for (let wait = 0; wait < round % 10; wait++) await new Promise((resolve) => setImmediate(resolve));
      const second = checkpoints.save(uid, { status: { phase: "Succeeded" } });
      await checkpoints.forget(uid);
      await rm(join(podsDir, uid), { recursive: true, force: true });
      await Promise.all([first, second]);
      await settleFiles();
      await assert.rejects(access(join(podsDir, uid)), /ENOENT/, `round ${round}`);
    }
  }));

test("what is written of pods is synced with its names soon after, many changes at once", () =>
  withCheckpoints(async (checkpoints, _podsDir, { clock, synced }) => {
    const other = "uid-2" as PodUid;
    for (const message of ["first", "second"]) {
      for (const pod of [uid, other]) await checkpoints.save(pod, { status: { phase: "Running", message } });
    }
    assert.deepEqual(synced, [], "nobody waits for the disk");
    await clock.advance(5_000);
    assert.deepEqual(synced, ["uid-1/nodelet.json", "uid-2/nodelet.json", "uid-1", "uid-2", ""]);
    await clock.advance(60_000);
    assert.equal(clock.pendingTimers, 0, "nothing goes on when nothing is written");
    synced.length = 0;
    await checkpoints.save(other, { status: { phase: "Running", message: "third" } });
    await clock.advance(5_000);
    assert.deepEqual(synced, ["uid-2/nodelet.json", "uid-2", ""]);
  }));

test("a disk that hangs holds up one sync, and no save; one that fails is tried with the next change", () =>
  withCheckpoints(async (checkpoints, podsDir, context) => {
    const { clock, synced } = context;
    let comeBack = (): void => {};
    const hanging = new Promise<void>((resolve) => {
      comeBack = resolve;
    });
    let underWay = 0;
    context.disk = async () => {
      underWay++;
      await hanging;
    };
    for (let at = 0; at < 20; at++) await checkpoints.save(`pod-${at}` as PodUid, { status: { phase: "Running" } });
    await clock.advance(60_000);
    await checkpoints.save(uid, { status: { phase: "Running", message: "goes on" } });
    assert.equal(checkpoints.load(uid).status?.message, "goes on");
    assert.equal(underWay, 1);
    context.disk = async () => {
      throw new Error("EIO");
    };
    comeBack();
    await clock.advance(60_000);
    context.disk = async () => {};
    synced.length = 0;
    await checkpoints.save(uid, { status: { phase: "Running", message: "after that" } });
    await rm(join(podsDir, "pod-3"), { recursive: true });
    await clock.advance(60_000);
    assert.deepEqual(synced, ["uid-1/nodelet.json", "uid-1", ""]);
  }));
