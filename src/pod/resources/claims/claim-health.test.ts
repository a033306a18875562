import assert from "node:assert/strict";
import { test } from "node:test";
import { ClaimWorld, claimingPod } from "../../../../test/support/claim-world.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import type { Container, PodUid } from "../../../ground/model/index.ts";
import { ClaimHealth } from "./claim-health.ts";

const gpu = "gpu.example.com";

test("how the devices of a container are, for as long as their driver says so", async () => {
  const world = new ClaimWorld(new FakeClock());
  const told: PodUid[] = [];
  const health = new ClaimHealth({ clock: world.clock, claims: world.manager, onHealth: (uid) => void told.push(uid) });
  const pod = claimingPod("p", ["one/a", "one/b"]);
  world.driver(gpu);
  world.allocate("one", [gpu], ["p"]);
  await world.prepare(pod);
  const [container] = pod.spec.containers as [Container];
  const shown = () => health.of(pod, container).map(({ name, resources }) => [name, resources?.[0]?.health]);
  const report = (device: string, state: "Healthy" | "Unhealthy"): void =>
    health.reported(gpu, [{ pool: "node", device, health: state }]);
  assert.deepEqual(shown(), [
    ["claim:my-one/a", "Unknown"],
    ["claim:my-one/b", "Unknown"],
  ]);
  report("one-a", "Healthy");
  report("stranger", "Unhealthy");
  assert.deepEqual(told.splice(0), ["p"]);
  report("one-a", "Healthy");
  assert.deepEqual(told.splice(0), [], "no news");
  report("one-b", "Unhealthy");
  assert.deepEqual(shown(), [
    ["claim:my-one/a", "Healthy"],
    ["claim:my-one/b", "Unhealthy"],
  ]);
  assert.equal(health.of(pod, container)[0]?.resources?.[0]?.resourceID, `${gpu}/one=a`);
  told.length = 0;
  await world.clock.advance(20_000);
  report("one-a", "Healthy");
  await world.clock.advance(20_000);
  report("one-a", "Healthy");
  assert.deepEqual(told.splice(0), ["p"], "of the other one nothing was heard for half a minute");
  assert.deepEqual(shown()[1], ["claim:my-one/b", "Unknown"]);
  await world.clock.advance(31_000);
  assert.deepEqual(told.splice(0), ["p"]);
  assert.deepEqual(shown()[0], ["claim:my-one/a", "Unknown"]);
  report("one-a", "Healthy");
  told.length = 0;
  health.lost(gpu);
  assert.deepEqual([told, shown()[0]?.[1]], [["p"], "Unknown"]);
  assert.equal(world.clock.pendingTimers, 0);
  await world.stop();
});
