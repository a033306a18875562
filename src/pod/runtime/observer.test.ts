import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { FakeRuntime } from "../../beside/hollow/index.ts";
import { ContainerConfig, PodSandboxConfig } from "../../connections/cri/index.ts";
import { never } from "../../ground/base/index.ts";
import type { ContainerId, PodUid } from "../../ground/model/index.ts";
import { runtimeLabels } from "./mapping/index.ts";
import { PodObserver } from "./observer.ts";

const uid = "u1" as PodUid;
const labels = { [runtimeLabels.podUid]: uid, [runtimeLabels.containerName]: "web" };

for (const how of ["exits", "is removed"] as const) {
  test(`who waits for a container's end hears of it when an inspection finds that it ${how}`, async () => {
    const clock = new FakeClock();
    const fake = new FakeRuntime({ clock });
    fake.imageStore.preload("app:1");
    const observer = new PodObserver({ runtime: fake.runtime, clock });
    const id = await start(fake);
    using end = observer.endOf(uid, id);
    using other = observer.endOf("u2" as PodUid, "c2" as ContainerId);
    await clock.advance(1_000);
    await observer.inspect(uid, never);
    assert.equal(end.signal.aborted, false, "it runs");
    if (how === "exits") fake.exit("web", 1);
    else await fake.runtime.removeContainer({ containerId: id });
    await observer.inspect(uid, never);
    assert.equal(end.signal.aborted, true);
    assert.equal(other.signal.aborted, false, "this one is of another pod");
  });
}

test("a look of somebody else is not taken for what the pod's worker knows", async () => {
  const clock = new FakeClock();
  const fake = new FakeRuntime({ clock });
  fake.imageStore.preload("app:1");
  const observer = new PodObserver({ runtime: fake.runtime, clock });
  await start(fake);
  await observer.inspect(uid, never);
  fake.exit("web", 1);
  const seen = await observer.look(uid, never);
  assert.equal(seen.containers[0]?.state, "exited");
  assert.equal(observer.latest(uid)?.containers[0]?.state, "running", "the worker has yet to hear of it");
});

async function start({ runtime }: FakeRuntime): Promise<ContainerId> {
  const sandboxConfig = PodSandboxConfig.fromPartial({ metadata: { uid, name: "p", namespace: "default" }, labels });
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig, runtimeHandler: "" });
  const config = ContainerConfig.fromPartial({ metadata: { name: "web" }, image: { image: "app:1" }, labels });
  const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
  await runtime.startContainer({ containerId });
  return containerId as ContainerId;
}
