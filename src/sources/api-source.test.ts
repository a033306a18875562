import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { FakeClock, settle } from "../../test/support/fake-clock.ts";
import { testPod } from "../../test/support/pods.ts";
import { silentLogger, TaskScope } from "../base/index.ts";
import type { IdentifiedPod } from "../model/index.ts";
import { ApiSource } from "./api-source.ts";

interface Fixture extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly checkpoint: string;
  readonly source: ApiSource;
  readonly delivered: string[][];
  pods: IdentifiedPod[];
  synced: boolean;
  start(): void;
  /** File work does not follow the clock: waits until the list of deliveries has this length. */
  until(deliveries: number): Promise<void>;
}

async function fixture(t: TestContext): Promise<Fixture> {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-api-source-"));
  t.after(() => rm(directory, { recursive: true }));
  const clock = new FakeClock();
  const scope = new TaskScope();
  const checkpoint = join(directory, "deep", "pods.json");
  const state: Fixture = {
    clock,
    checkpoint,
    delivered: [],
    pods: [],
    synced: false,
    source: new ApiSource(
      { checkpoint },
      {
        clock,
        log: silentLogger,
        hasSynced: () => state.synced,
        pods: () => state.pods,
        deliver: async (pods) => void state.delivered.push(pods.map(({ metadata }) => metadata.name)),
      },
    ),
    start: () => scope.spawn("source", (signal) => state.source.run(signal)),
    async until(deliveries) {
      while (state.delivered.length < deliveries) await settle(1);
      await settle(50);
    },
    [Symbol.asyncDispose]: () => scope.stop(),
  };
  return state;
}

/** What is on disk, as soon as it is there. */
async function saved(given: Fixture): Promise<string> {
  for (;;) {
    try {
      return await readFile(given.checkpoint, "utf8");
    } catch {
      await settle(1);
    }
  }
}

test("delivers the whole list after the first sync and after every change", async (t) => {
  await using given = await fixture(t);
  given.start();
  given.synced = true;
  given.pods = [testPod({}, { name: "a" })];
  given.source.wake();
  await given.until(1);
  given.pods = [testPod({}, { name: "a" }), testPod({}, { name: "b" })];
  given.source.wake();
  await given.until(2);
  assert.deepEqual(given.delivered, [["a"], ["a", "b"]]);
});

test("keeps the list on disk, for nobody else to read", async (t) => {
  await using given = await fixture(t);
  given.start();
  given.synced = true;
  given.pods = [testPod({}, { name: "a" })];
  given.source.wake();
  await given.until(1);
  assert.equal(JSON.parse(await saved(given))[0].metadata.name, "a");
  assert.equal((await stat(given.checkpoint)).mode & 0o777, 0o600);
});

test("without the API the pods it wanted last are delivered, and the truth when it is back", async (t) => {
  await using first = await fixture(t);
  first.start();
  first.synced = true;
  first.pods = [testPod({}, { name: "old" })];
  first.source.wake();
  await first.until(1);
  const text = await saved(first);

  await using second = await fixture(t);
  await mkdir(join(second.checkpoint, ".."), { recursive: true });
  await writeFile(second.checkpoint, text);
  second.start();
  await second.clock.advance(9_000);
  assert.deepEqual(second.delivered, [], "the API gets time to answer");
  await second.clock.advance(2_000);
  await second.until(1);
  assert.deepEqual(second.delivered, [["old"]]);
  second.synced = true;
  second.pods = [testPod({}, { name: "new" })];
  second.source.wake();
  await second.until(2);
  assert.deepEqual(second.delivered, [["old"], ["new"]]);
});

test("a damaged list on disk is no list", async (t) => {
  await using given = await fixture(t);
  await mkdir(join(given.checkpoint, ".."), { recursive: true });
  await writeFile(given.checkpoint, "[{");
  given.start();
  await given.clock.advance(20_000);
  await settle(50);
  assert.deepEqual(given.delivered, []);
});
