import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { FakeRuntime } from "../../beside/hollow/index.ts";
import { ContainerConfig, PodSandboxConfig } from "../../connections/cri/index.ts";
import { never } from "../../ground/base/index.ts";
import { listStartedPods } from "./list-started-pods.ts";

test("the hash of a container is that of its last attempt, though the clock was set back before it", async () => {
  const clock = new FakeClock();
  const fake = new FakeRuntime({ clock });
  fake.imageStore.preload("app");
  const metadata = { name: "web", namespace: "default", uid: "web", attempt: 0 };
  const config = PodSandboxConfig.fromPartial({ metadata });
  const { podSandboxId } = await fake.runtime.runPodSandbox({ config, runtimeHandler: "" });
  const create = async (attempt: number, hash: string): Promise<void> => {
    const labels = { "io.kubernetes.container.name": "main" };
    const annotations = { "io.kubernetes.container.hash": hash };
    const made = { metadata: { name: "main", attempt }, image: { image: "app" }, labels, annotations };
    await fake.runtime.createContainer({
      podSandboxId,
      config: ContainerConfig.fromPartial(made),
      sandboxConfig: undefined,
    });
  };
  await create(0, "old");
  clock.setBack(7_200_000);
  await create(1, "new");
  const [started] = await listStartedPods(fake.runtime, never);
  assert.deepEqual(started?.containerHashes, new Map([["main", "new"]]));
});

test("a pod that lives comes before one of its name that has ended, though the clock was set back between them", async () => {
  const clock = new FakeClock();
  const fake = new FakeRuntime({ clock });
  const run = async (uid: string): Promise<string> => {
    const metadata = { name: "web", namespace: "default", uid, attempt: 0 };
    const config = PodSandboxConfig.fromPartial({ metadata, labels: { "io.kubernetes.pod.uid": uid } });
    return (await fake.runtime.runPodSandbox({ config, runtimeHandler: "" })).podSandboxId;
  };
  const ended = await run("ended");
  await fake.runtime.stopPodSandbox({ podSandboxId: ended });
  clock.setBack(7_200_000);
  await run("live");
  const started = await listStartedPods(fake.runtime, never);
  assert.deepEqual(
    started.map(({ uid }) => uid),
    ["live", "ended"],
  );
});
