// Pods that want the same image at the same time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../../test/support/fake-clock.ts";
import { at, image, Node, podOf } from "../../../test/support/pulling-node.ts";
import type { ImagePhase } from "./image-puller.ts";

test("pods that want the same image with the same credentials share one pull; each gets its own events", async () => {
  const node = new Node();
  node.service.registry.set(image, { id: "sha256:app", size: 10n });
  node.service.hold(image);
  const phases: Record<string, ImagePhase[]> = { p1: [], p2: [] };
  const want = (uid: string) =>
    node.ensure({ pod: podOf(uid), fieldPath: undefined, onPhase: (phase) => phases[uid]?.push(phase) });
  const first = want("p1");
  await node.clock.advance(2_000);
  const second = want("p2");
  await node.clock.advance(1_234);
  assert.deepEqual(node.puller.list(), [{ image, podUids: ["p1", "p2"], ageMs: 3_234 }]);
  node.service.release(image);
  await Promise.all([first, second]);
  assert.equal(node.service.pulls.length, 1);
  assert.deepEqual(node.events, [
    'p1 - Normal Pulling Pulling image "reg.io/app:1"',
    'p2 - Normal Pulling Pulling image "reg.io/app:1"',
    'p1 - Normal Pulled Successfully pulled image "reg.io/app:1" in 3.234s (3.234s including waiting). Image size: 10 bytes.',
    'p2 - Normal Pulled Successfully pulled image "reg.io/app:1" in 3.234s (1.234s including waiting). Image size: 10 bytes.',
  ]);
  assert.deepEqual(phases, {
    p1: [{ type: "pulling", ageMs: 0 }],
    p2: [{ type: "pulling", ageMs: 2_000 }],
  });
  assert.deepEqual(node.outcomes, [{ outcome: "pulled", durationMs: 3_234, sizeBytes: 10n }]);
});

test("other credentials make it another pull", async () => {
  const node = new Node({ serializeImagePulls: false });
  node.service.registry.set(image, { id: "sha256:app", logins: ["a:1", "b:2"] });
  node.service.hold(image);
  node.logins = ["a:1"];
  const first = node.ensure({ pod: podOf("p1") });
  await settle();
  node.logins = ["b:2"];
  const second = node.ensure({ pod: podOf("p2") });
  await settle();
  assert.deepEqual(
    node.service.pulls.map(({ login }) => login),
    ["a:1", "b:2"],
  );
  node.service.release(image);
  await Promise.all([first, second]);
});

test("a present image never waits behind a foreign pull, nor does one that arrives meanwhile", async () => {
  const node = new Node();
  for (const name of [image, "reg.io/huge:1", "reg.io/here:1"])
    node.service.registry.set(name, { id: `sha256:${name}` });
  node.service.preload("reg.io/here:1", { id: "sha256:here" });
  node.service.hold(image);
  node.service.hold("reg.io/huge:1");
  node.logins = ["a:1"];
  const first = node.ensure();
  await settle();
  const huge = node.ensure({ image: "reg.io/huge:1", pod: podOf("p2") });
  await settle();
  node.logins = ["b:2"];
  const phases: ImagePhase[] = [];
  const waits = node.ensure({ pod: podOf("p3"), onPhase: (phase) => phases.push(phase) });
  assert.equal((await node.ensure({ image: "reg.io/here:1", pod: podOf("p4") })).imageRef, "sha256:here");
  node.service.release(image);
  assert.equal((await waits).imageRef, `sha256:${image}`);
  assert.deepEqual(phases, [{ type: "queued" }]);
  assert.match(node.events.at(-1) ?? "", /^p3 .* already present on machine$/);
  node.service.release("reg.io/huge:1");
  await Promise.all([first, huge]);
  assert.equal(node.service.pulls.length, 2);
});

test("a pod that goes away stops its pull, says nothing more and is not held back later", async () => {
  const node = new Node();
  node.service.registry.set(image, { id: "sha256:app" });
  node.service.hold(image);
  const leaver = new AbortController();
  const leaving = node.ensure({}, leaver.signal);
  const rejected = assert.rejects(leaving, /pod deleted/);
  await settle();
  leaver.abort(new Error("pod deleted"));
  await rejected;
  assert.deepEqual(node.takeEvents(), [`${at} Normal Pulling Pulling image "reg.io/app:1"`]);
  assert.deepEqual(node.puller.list(), []);
  node.service.release(image);
  await node.ensure();
});

test("a limit on how long a pull may take, when configured", async () => {
  const node = new Node({ longestPullMs: 600_000 });
  node.service.registry.set(image, { id: "sha256:app" });
  node.service.hold(image);
  const refused = node.refusal();
  await node.clock.advance(600_000);
  assert.equal((await refused).message, "the pull was given up after 10m0s");
  assert.equal(node.clock.pendingTimers, 0);
  assert.deepEqual(node.outcomes, [{ outcome: "failed", durationMs: 600_000, sizeBytes: 0n }]);
});
