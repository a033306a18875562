import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { testPod } from "../../../test/support/pods.ts";
import type { Pod, PodStatus, PodViewChange } from "../../ground/model/index.ts";
import { type RunningPods, waitForPods } from "./wait-for-pods.ts";

class FakePods implements RunningPods {
  ready = false;
  blocker: { reason: string; message: string; since: number } | undefined;
  readonly #pods = new Map<string, Pod>();
  readonly #listeners = new Set<(change: PodViewChange) => void>();
  readonly views: RunningPods["views"] = {
    pods: () => [...this.#pods.values()],
    watchPods: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
    ledger: () => ({ entries: [], dropped: 0, blocker: this.blocker }),
  };
  sourcesReady = (): boolean => this.ready;
  get listening(): number {
    return this.#listeners.size;
  }
  set(name: string, status: PodStatus): void {
    const object: Pod = { ...testPod({}, { name, uid: name }), status };
    this.#pods.set(name, object);
    for (const listener of this.#listeners) listener({ type: "MODIFIED", object });
  }
}

describe("waiting for pods once", () => {
  test("ends when every pod runs, has succeeded or has failed, and not before the sources have spoken", async () => {
    const pods = new FakePods();
    const clock = new FakeClock();
    const waiting = waitForPods(pods, { clock, timeoutMs: 60_000 }, new AbortController().signal);
    let done = false;
    void waiting.then(() => {
      done = true;
    });
    pods.set("a", { phase: "Running", podIP: "10.0.0.1" });
    await clock.advance(1_000);
    assert.equal(done, false);
    pods.ready = true;
    pods.set("b", { phase: "Pending" });
    pods.set("c", { phase: "Failed", reason: "NodePorts", message: "Pod was rejected: taken" });
    await clock.advance(1_000);
    assert.equal(done, false);
    pods.set("b", { phase: "Succeeded" });
    await settle();
    await clock.advance(200);
    assert.deepEqual(await waiting, [
      { pod: "default/a", ok: true, text: "Running at 10.0.0.1" },
      { pod: "default/b", ok: true, text: "Succeeded" },
      { pod: "default/c", ok: false, text: "Failed: NodePorts: Pod was rejected: taken" },
    ]);
    assert.equal(pods.listening, 0);
    assert.equal(clock.pendingTimers, 0);
  });

  test("a pod that gets nowhere has failed when the time is up, and says what it waits for", async () => {
    const pods = new FakePods();
    const clock = new FakeClock();
    pods.ready = true;
    pods.blocker = { reason: "ImagePullBackOff", message: 'Back-off pulling image "x"', since: 0 };
    pods.set("a", { phase: "Pending" });
    const waiting = waitForPods(pods, { clock, timeoutMs: 5_000 }, new AbortController().signal);
    await clock.advance(6_000);
    assert.deepEqual(await waiting, [
      { pod: "default/a", ok: false, text: 'not running after 5s: ImagePullBackOff: Back-off pulling image "x"' },
    ]);
  });
});
