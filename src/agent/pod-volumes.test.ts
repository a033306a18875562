import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import type { PodUid } from "../ground/model/index.ts";
import type { VolumeKind } from "../pod/volumes/index.ts";

/** A kind of volume that can't be had for a while. */
class LateKind implements VolumeKind {
  readonly plugin = "example.com/late";
  problem: Error | undefined = new Error("the disk is away");
  tries = 0;

  matches(): boolean {
    return true;
  }

  async setUp(): ReturnType<VolumeKind["setUp"]> {
    this.tries++;
    if (this.problem !== undefined) throw this.problem;
    return { volume: { type: "filesystem", hostPath: "/tmp", readOnly: false, relabel: false } };
  }

  async tearDown(): Promise<void> {}
}

test("a pod whose volume can't be had says what it waits for and when the next try comes, and starts at once then", async () => {
  const kind = new LateKind();
  await using engine = await TestEngine.start({ volumeKinds: [kind] });
  await engine.want(
    enginePod("p", {
      containers: [{ name: "main", image: "busybox:1", volumeMounts: [{ name: "v", mountPath: "/v" }] }],
      volumes: [{ name: "v", emptyDir: {} }],
    }),
  );
  const blocker = () => engine.engine.ledger.read("p" as PodUid)?.blocker;
  const message =
    "unmounted volumes=[v], unattached volumes=[], failed to process volumes=[]: " +
    'MountVolume.SetUp failed for volume "v" : the disk is away';
  for (const tries of [4, 8]) {
    await engine.until(`${tries} tries`, () => kind.tries >= tries);
    await engine.until("it waits", () => blocker()?.reason === "FailedMount");
    assert.equal(blocker()?.message, message);
    const wait = (blocker()?.nextTryAt ?? 0) - engine.clock.now();
    assert.ok(wait > 0 && wait <= 500 * 2 ** (tries - 1), `the next try comes in ${wait} ms`);
  }
  assert.deepEqual(
    new Set(engine.events),
    new Set(['p FailedMount: MountVolume.SetUp failed for volume "v" : the disk is away']),
  );
  kind.problem = undefined;
  await engine.until("it runs", () => engine.running().length === 1);
  assert.equal(blocker(), undefined);
});
