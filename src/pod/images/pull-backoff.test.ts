import assert from "node:assert/strict";
import { test } from "node:test";
import { at, image, Node, podOf } from "../../../test/support/pulling-node.ts";
import type { ImageRequest } from "./image-puller.ts";

test("back-off: 10 s doubling to 5 min, measured from the failure, with the failure in the message", async () => {
  const node = new Node();
  const waits: number[] = [];
  for (let round = 0; round < 7; round++) {
    const failure = await node.refusal();
    assert.equal(failure.reason, "ErrImagePull");
    assert.ok(failure.nextTryAt !== undefined);
    waits.push(failure.nextTryAt - node.clock.now());
    await node.clock.advance(failure.nextTryAt - node.clock.now() - 1);
    const tooEarly = await node.refusal();
    assert.equal(tooEarly.reason, "ImagePullBackOff");
    assert.equal(tooEarly.nextTryAt, failure.nextTryAt);
    await node.clock.advance(1);
  }
  assert.deepEqual(waits, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  assert.equal(node.service.pulls.length, 7);
});

test("back-off: texts and events", async () => {
  const node = new Node();
  await node.refusal();
  node.takeEvents();
  const error = await node.refusal();
  assert.equal(
    error.message,
    'Back-off pulling image "reg.io/app:1": ErrImagePull: rpc error: code = NotFound desc = failed to resolve reference "reg.io/app:1"',
  );
  assert.deepEqual(node.events, [
    `${at} Normal BackOff Back-off pulling image "reg.io/app:1"`,
    `${at} Warning Failed Error: ImagePullBackOff`,
  ]);
});

test("back-off: is of one pod and one image, ends after 10 min of quiet, and with the pod", async () => {
  const node = new Node();
  const retried = async (request: Partial<ImageRequest> = {}): Promise<boolean> =>
    (await node.refusal(request)).reason !== "ImagePullBackOff";
  assert.equal(await retried(), true);
  assert.equal(await retried(), false);
  assert.equal(await retried({ pod: podOf("p2") }), true);
  assert.equal(await retried({ image: "reg.io/other:1" }), true);
  node.puller.backoff.forgetPod("p1");
  assert.equal(await retried(), true);
  await node.clock.advance(10_000);
  assert.equal((await node.refusal()).nextTryAt, node.clock.now() + 20_000);
  await node.clock.advance(600_001);
  assert.equal((await node.refusal()).nextTryAt, node.clock.now() + 10_000);
});

test("back-off: a present image is used meanwhile, a success forgets what is old", async () => {
  const node = new Node();
  await node.refusal();
  node.service.preload(image, { id: "sha256:app" });
  assert.equal((await node.ensure()).imageRef, "sha256:app");
  await node.clock.advance(600_001);
  node.service.registry.set("reg.io/other:1", { id: "sha256:other" });
  await node.ensure({ image: "reg.io/other:1" });
  assert.deepEqual(node.puller.backoff.save(), []);
});

test("back-off: kept across a restart when saved, and not stretched by a clock set back", async () => {
  const node = new Node();
  await node.refusal();
  await node.clock.advance(4_000);
  const saved = JSON.parse(JSON.stringify(node.puller.backoff.save()));
  const restarted = new Node();
  restarted.puller.backoff.restore(saved);
  await restarted.clock.advance(4_000);
  const error = await restarted.refusal();
  assert.equal(error.reason, "ImagePullBackOff");
  assert.equal(error.nextTryAt, restarted.clock.now() + 6_000);
  const past = new Node();
  past.puller.backoff.restore(saved);
  Object.assign(past.clock, { now: () => Date.UTC(2025, 0, 1) });
  assert.equal((await past.refusal()).reason, "ErrImagePull");
});
