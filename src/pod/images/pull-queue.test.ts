import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { TokenBucket } from "../../ground/base/index.ts";
import { longestTurnMs, PullQueue } from "./pull-queue.ts";

/** A registry of pulls that end when the test says so. */
class Pulls {
  readonly clock = new FakeClock();
  readonly queue: PullQueue<string>;
  readonly started: string[] = [];
  readonly stopped: string[] = [];
  readonly phases: string[] = [];
  readonly #ends = new Map<string, (error?: Error) => void>();

  constructor(limit: number) {
    this.queue = new PullQueue(limit, this.clock);
  }

  want(
    podUid: string,
    key: string,
    options: { image?: string; onceArrived?: "use" | "pull"; signal?: AbortSignal } = {},
  ): Promise<string> {
    const { image = key, onceArrived = "pull", signal = new AbortController().signal } = options;
    const result = this.queue.run(
      {
        key,
        image,
        podUid,
        onceArrived,
        pull: (jobSignal) => this.#pull(key, jobSignal),
        onQueued: () => this.phases.push(`${podUid} queued ${key}`),
        onStart: (at) => this.phases.push(`${podUid} pulling ${key} since ${at}`),
      },
      signal,
    );
    return result.then((outcome) =>
      outcome.type === "arrived" ? "arrived" : `${outcome.result} ${outcome.durationMs}`,
    );
  }

  async end(key: string, error?: Error): Promise<void> {
    const end = this.#ends.get(key);
    assert.ok(end !== undefined, `${key} is not being pulled`);
    end(error);
    await settle();
  }

  #pull(key: string, signal: AbortSignal): Promise<string> {
    this.started.push(key);
    return new Promise((resolve, reject) => {
      this.#ends.set(key, (error) => (error === undefined ? resolve(key) : reject(error)));
      signal.addEventListener("abort", () => {
        this.stopped.push(key);
        reject(signal.reason);
      });
    });
  }
}

test("serial: one at a time, in order of arrival between pods", async () => {
  const pulls = new Pulls(1);
  const all = Promise.allSettled(["a", "b", "c"].map((key) => pulls.want(`pod-${key}`, key)));
  assert.deepEqual(pulls.started, ["a"]);
  await pulls.clock.advance(700);
  await pulls.end("a");
  assert.deepEqual(pulls.started, ["a", "b"]);
  await pulls.end("b", new Error("no such image"));
  await pulls.end("c");
  const [a, b, c] = await all;
  assert.deepEqual(a, { status: "fulfilled", value: "a 700" });
  assert.equal(b?.status, "rejected");
  assert.deepEqual(c, { status: "fulfilled", value: "c 0" });
  assert.deepEqual(pulls.queue.list(), []);
});

test("serial: a pod with many images lets the others in between", async () => {
  const pulls = new Pulls(1);
  const all = ["big-1", "big-2", "big-3"].map((key) => pulls.want("big", key));
  all.push(pulls.want("small", "small-1"), pulls.want("tiny", "tiny-1"));
  for (const key of ["big-1", "small-1", "tiny-1", "big-2", "big-3"]) await pulls.end(key);
  assert.deepEqual(pulls.started, ["big-1", "small-1", "tiny-1", "big-2", "big-3"]);
  await Promise.all(all);
});

test("a pod that joins a waiting pull brings it forward", async () => {
  const pulls = new Pulls(1);
  const all = ["big-1", "big-2", "common"].map((key) => pulls.want("big", key));
  all.push(pulls.want("small", "common"));
  for (const key of ["big-1", "common", "big-2"]) await pulls.end(key);
  assert.deepEqual(pulls.started, ["big-1", "common", "big-2"]);
  await Promise.all(all);
});

for (const [limit, atOnce] of [
  [2, 2],
  [Number.POSITIVE_INFINITY, 4],
] as const) {
  test(`parallel: at most ${limit}`, async () => {
    const pulls = new Pulls(limit);
    const all = ["a", "b", "c", "d"].map((key) => pulls.want("pod", key));
    assert.equal(pulls.started.length, atOnce);
    for (const key of ["a", "b", "c", "d"]) await pulls.end(key);
    await Promise.all(all);
  });
}

test("the same pull of two pods runs once; the phases tell each pod where it stands", async () => {
  const pulls = new Pulls(1);
  const first = pulls.want("p1", "a");
  await pulls.clock.advance(1_000);
  const second = pulls.want("p2", "a");
  const waits = pulls.want("p3", "b");
  assert.deepEqual(pulls.queue.list(), [
    { image: "a", podUids: ["p1", "p2"], ageMs: 1_000 },
    { image: "b", podUids: ["p3"], ageMs: undefined },
  ]);
  await pulls.clock.advance(500);
  await pulls.end("a");
  assert.deepEqual(await Promise.all([first, second]), ["a 1500", "a 1500"]);
  await pulls.end("b");
  await waits;
  assert.deepEqual(pulls.started, ["a", "b"]);
  assert.deepEqual(pulls.phases, [
    "p1 pulling a since 0",
    "p2 pulling a since 0",
    "p3 queued b",
    "p3 pulling b since 1500",
  ]);
});

test("a pod that leaves does not stop the pull another needs; the last one does, and the next gets its turn", async () => {
  const pulls = new Pulls(1);
  const [one, two] = [new AbortController(), new AbortController()];
  const first = pulls.want("p1", "a", { signal: one.signal });
  const second = pulls.want("p2", "a", { signal: two.signal });
  const third = pulls.want("p3", "b");
  one.abort(new Error("p1 deleted"));
  await assert.rejects(first, /p1 deleted/);
  assert.deepEqual(pulls.stopped, []);
  assert.deepEqual(pulls.queue.list()[0]?.podUids, ["p2"]);
  two.abort(new Error("p2 deleted"));
  await assert.rejects(second, /p2 deleted/);
  assert.deepEqual(pulls.stopped, ["a"]);
  await settle();
  await pulls.end("b");
  assert.equal(await third, "b 0");
});

test("serial: a pull that does not end goes on without its turn, and the next pod has it", async () => {
  const pulls = new Pulls(1);
  const stuck = pulls.want("a", "a1");
  const further = pulls.want("a", "a2");
  const other = pulls.want("b", "b1");
  await pulls.clock.advance(longestTurnMs - 1);
  assert.deepEqual(pulls.started, ["a1"]);
  await pulls.clock.advance(1);
  assert.deepEqual(pulls.started, ["a1", "b1"], "one more, and not of the pod that has one");
  await pulls.end("b1");
  assert.equal(await other, "b1 0");
  assert.deepEqual(pulls.started, ["a1", "b1", "a2"]);
  await pulls.end("a1");
  assert.equal(await stuck, `a1 ${longestTurnMs}`);
  const last = pulls.want("c", "c1");
  await settle();
  assert.deepEqual(pulls.started, ["a1", "b1", "a2"], "its turn is not given back twice");
  await pulls.end("a2");
  await pulls.end("c1");
  assert.deepEqual([await further, await last], ["a2 0", "c1 0"]);
});

test("one who leaves the queue takes its place with it", async () => {
  const pulls = new Pulls(1);
  const leaver = new AbortController();
  const first = pulls.want("p1", "a");
  const second = pulls.want("p2", "b", { signal: leaver.signal });
  leaver.abort(new Error("deleted"));
  await assert.rejects(second, /deleted/);
  await pulls.end("a");
  await first;
  assert.deepEqual(pulls.started, ["a"]);
});

test("after everybody left a pull, the same pull starts afresh at once", async () => {
  const pulls = new Pulls(1);
  const leaver = new AbortController();
  const first = pulls.want("p1", "a", { signal: leaver.signal });
  await pulls.clock.advance(5_000);
  leaver.abort(new Error("deleted"));
  const again = pulls.want("p2", "a");
  await assert.rejects(first, /deleted/);
  await settle();
  await pulls.clock.advance(100);
  await pulls.end("a");
  assert.equal(await again, "a 100");
  assert.deepEqual(pulls.started, ["a", "a"]);
});

test("who only needs the image present stops waiting when another pull brought it; who must pull goes on waiting", async () => {
  const pulls = new Pulls(1);
  const first = pulls.want("p1", "a with key 1", { image: "a" });
  const foreign = pulls.want("p2", "huge");
  const content = pulls.want("p3", "a with key 2", { image: "a", onceArrived: "use" });
  const insists = pulls.want("p4", "a with key 2", { image: "a", onceArrived: "pull" });
  await pulls.end("a with key 1");
  assert.equal(await content, "arrived");
  assert.deepEqual(pulls.started, ["a with key 1", "huge"]);
  await pulls.end("huge");
  await pulls.end("a with key 2");
  assert.equal(await insists, "a with key 2 0");
  await Promise.all([first, foreign]);
});

test("a failed pull does not count as arrival", async () => {
  const pulls = new Pulls(1);
  const first = pulls.want("p1", "a with key 1", { image: "a" });
  const second = pulls.want("p2", "a with key 2", { image: "a", onceArrived: "use" });
  const failed = assert.rejects(first, /denied/);
  await pulls.end("a with key 1", new Error("denied"));
  await failed;
  await pulls.end("a with key 2");
  assert.equal(await second, "a with key 2 0");
});

test("token bucket: the burst at once, then as many as the rate allows, never more than the burst saved up", async () => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(5, 10, clock);
  const take = (times: number): number => Array.from({ length: times }, () => bucket.tryTake()).filter(Boolean).length;
  assert.equal(take(12), 10);
  await clock.advance(199);
  assert.equal(take(1), 0);
  await clock.advance(1);
  assert.equal(take(2), 1);
  await clock.advance(60_000);
  assert.equal(take(20), 10);
});
