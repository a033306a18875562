import assert from "node:assert/strict";
import { test } from "node:test";
import { configOf, loadFile } from "../../../test/support/load-config.ts";
import { enginePod, TestEngine } from "../../../test/support/test-engine.ts";
import { silentLogger } from "../../ground/base/index.ts";
import type { PodSpec } from "../../ground/model/index.ts";
import { imageKind } from "../volumes/kinds/image.ts";
import { fetchMountedImages, mountedImageNames } from "./image-volumes.ts";
import { PodImages } from "./pod-images.ts";

const spec = (image: object, more: object = {}): Partial<PodSpec> => ({
  containers: [
    { name: "main", image: "busybox:1", volumeMounts: [{ name: "tools", mountPath: "/tools", subPath: "bin" }] },
  ],
  volumes: [
    { name: "tools", image },
    { name: "unused", image: { reference: "never:1" } },
  ],
  ...more,
});

/** The engine with images fetched as the agent does. */
async function startEngine(): Promise<TestEngine> {
  const config = configOf(await loadFile(""));
  return TestEngine.start({
    runtime: { unknownImages: "absent" },
    volumeKinds: [imageKind],
    images: (runtime, { clock, ledger, metrics }) => {
      const { ensureImage } = new PodImages(config, {
        content: undefined,
        images: runtime.images,
        runtime: () => ({ name: "containerd", version: "2.1.0", apiVersion: "v1" }),
        clock,
        log: silentLogger,
        ledger,
        recordEvent() {},
        metrics: metrics.images,
        ownProcess: { workDir: "/", homeDir: undefined, environment: {} },
        onUse() {},
        pullSecrets: async () => [],
        runtimeHandlerOf: () => "",
        serviceAccounts: undefined,
        access: undefined,
      });
      return { prefetchImage() {}, ensureImage };
    },
  });
}

test("an image is fetched and mounted by the runtime, read-only, with the part that is asked for", async () => {
  await using engine = await startEngine();
  engine.runtime.imageStore.publish({ name: "tools:1" });
  await engine.want(enginePod("p", spec({ reference: "tools:1" })));
  await engine.until("it runs", () => engine.running().length === 1);
  const [container] = engine.runtime.containers();
  const [mount] = container?.config.mounts.filter(({ containerPath }) => containerPath === "/tools") ?? [];
  assert.deepEqual(
    [mount?.hostPath, mount?.readonly, mount?.imageSubPath, mount?.image?.userSpecifiedImage],
    ["", true, "bin", "tools:1"],
  );
  const { images } = await engine.runtime.images.listImages({ filter: undefined });
  const fetched = images.find(({ repoTags }) => repoTags.some((tag) => tag.endsWith("tools:1")));
  assert.equal(mount?.image?.image, fetched?.id);
  assert.ok(!images.some(({ repoTags }) => repoTags.some((tag) => tag.endsWith("never:1"))), "unused, so not fetched");
});

test("an image that can't be fetched: the container waits with the reason that users know from its own image", async () => {
  await using engine = await startEngine();
  await engine.want(enginePod("p", spec({ reference: "absent:1" })));
  const waiting = (): string | undefined => engine.container("p", "main").state?.waiting?.reason;
  await engine.until("the pull failed", () => waiting() === "ErrImagePull" || waiting() === "ImagePullBackOff");
  engine.runtime.imageStore.publish({ name: "absent:1" });
  await engine.until("it runs", () => engine.running().length === 1);
});

for (const [name, version, problem] of [
  [
    "containerd",
    "1.6.20~ds1",
    /volume "tools" is an image, which containerd 1\.6\.20~ds1 can't mount; containerd 2\.1 or newer can/,
  ],
  ["containerd", "v2.0.5", /containerd 2\.1 or newer can/],
  ["containerd", "2.1.0", undefined],
  ["containerd", "3.0.0", undefined],
  ["cri-o", "1.30.2", /cri-o 1\.31 or newer can/],
  ["cri-o", "1.34.0", undefined],
  ["another", "0.1.0", undefined],
] as const) {
  test(`images as volumes: ${name} ${version} ${problem === undefined ? "is asked" : "is not asked"}`, async () => {
    const pod = enginePod("p", spec({ reference: "tools:1", pullPolicy: "Never" }));
    const [container = { name: "" }] = pod.spec.containers;
    const fetched: string[] = [];
    const work = fetchMountedImages(
      pod,
      container,
      () => ({ name, version, apiVersion: "v1" }),
      async (image) => {
        fetched.push(`${image.reference} ${image.pullPolicy}`);
        return "sha256:t";
      },
    );
    if (problem === undefined) assert.deepEqual([...(await work)], [["tools", "sha256:t"]]);
    else await assert.rejects(work, problem);
    assert.deepEqual(fetched, problem === undefined ? ["tools:1 Never"] : []);
    assert.deepEqual(mountedImageNames([pod]), ["tools:1", "never:1"]);
  });
}
