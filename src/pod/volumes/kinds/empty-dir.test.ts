import assert from "node:assert/strict";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { isMountPoint, readMounts } from "../../../connections/host/index.ts";
import { type PodSpec, uidOf } from "../../../ground/model/index.ts";
import { memorySize } from "./empty-dir.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const plugin = "kubernetes.io/empty-dir";
const Mi = 1n << 20n;

const node = { allocatableMemoryBytes: () => 1000n * Mi };
const limited = (memory: string) => ({ name: "c", image: "x", resources: { limits: { memory } } });
for (const { name, spec, sizeLimit, expected } of [
  { name: "no limit anywhere", spec: {}, sizeLimit: undefined, expected: 1000n },
  { name: "its own limit", spec: {}, sizeLimit: "10Mi", expected: 10n },
  {
    name: "the pod's limit",
    spec: { containers: [limited("64Mi"), limited("36Mi")] },
    sizeLimit: undefined,
    expected: 100n,
  },
  { name: "the smaller of both", spec: { containers: [limited("64Mi")] }, sizeLimit: "128Mi", expected: 64n },
  {
    name: "the pod-level limit",
    spec: { resources: { limits: { memory: "20Mi" } } },
    sizeLimit: "128Mi",
    expected: 20n,
  },
  { name: "more than the node has", spec: {}, sizeLimit: "1Ti", expected: 1000n },
  { name: "a limit of zero is none", spec: {}, sizeLimit: "0", expected: 1000n },
] as const) {
  test(`size in memory: ${name}`, () => {
    const pod = podWithVolumes([], spec as Partial<PodSpec>);
    assert.equal(memorySize(pod, node, sizeLimit), expected * Mi);
  });
}

test("on disk: open to every user, gone with all its content", needsRoot, async () => {
  await using engine = await VolumeNode.create();
  const pod = podWithVolumes([{ name: "v", emptyDir: {} }]);
  await engine.volumes.mount(pod, never);
  const path = engine.volumePath(uidOf(pod), plugin, "v");
  const found = await stat(path);
  assert.deepEqual([found.mode & 0o7777, found.uid, found.gid], [0o777, 0, 0]);
  assert.equal(await isMountPoint(path), false);
  await writeFile(join(path, "x"), "1");
  const marker = join(engine.podsDir, uidOf(pod), "plugins/kubernetes.io~empty-dir/v/ready");
  assert.equal(await readFile(marker, "utf8"), "");
  await engine.volumes.unmount(uidOf(pod));
  assert.deepEqual(await readdir(join(engine.podsDir, uidOf(pod))), []);
});

test("in memory: a tmpfs of the wanted size that never swaps", needsRoot, async () => {
  await using engine = await VolumeNode.create();
  const pod = podWithVolumes([{ name: "v", emptyDir: { medium: "Memory", sizeLimit: "2Mi" } }], {
    securityContext: { fsGroup: 99 },
  });
  await engine.volumes.mount(pod, never);
  const path = engine.volumePath(uidOf(pod), plugin, "v");
  const mount = (await readMounts()).find(({ mountPoint }) => mountPoint === path);
  assert.equal(mount?.fsType, "tmpfs");
  assert.ok(mount?.superOptions.includes("size=2048k"), mount?.superOptions.join());
  assert.ok(mount?.superOptions.includes("noswap"), mount?.superOptions.join());
  const found = await stat(path);
  assert.deepEqual([found.mode & 0o7777, found.gid], [0o3777, 99], "sticky, as the kernel makes it and pods know it");
  await assert.rejects(writeFile(join(path, "big"), Buffer.alloc(3 << 20)), { code: "ENOSPC" });
});

test("set up again after a crash between mounting and marking: one mount, same data", needsRoot, async () => {
  await using engine = await VolumeNode.create();
  const pod = podWithVolumes([{ name: "v", emptyDir: { medium: "Memory" } }]);
  await engine.volumes.mount(pod, never);
  const path = engine.volumePath(uidOf(pod), plugin, "v");
  await writeFile(join(path, "x"), "kept");
  await rm(join(engine.podsDir, uidOf(pod), "plugins"), { recursive: true });
  await engine.restart();
  await engine.volumes.mount(pod, never);
  assert.deepEqual(await engine.mounts(), [path]);
  assert.equal(await readFile(join(path, "x"), "utf8"), "kept");
});

test("huge pages: of the size that the pod requests", needsRoot, async () => {
  await using engine = await VolumeNode.create();
  const requests = { resources: { limits: { "hugepages-2Mi": "4Mi", memory: "1Mi" } } };
  for (const medium of ["HugePages", "HugePages-2Mi"]) {
    const volumes = [{ name: "v", emptyDir: { medium } }];
    const mounts = [{ name: "v", mountPath: "/v" }];
    const pod = podWithVolumes(volumes, { containers: [{ name: "c", image: "x", volumeMounts: mounts, ...requests }] });
    await engine.volumes.mount(pod, never);
    const path = engine.volumePath(uidOf(pod), plugin, "v");
    const mount = (await readMounts()).find(({ mountPoint }) => mountPoint === path);
    assert.equal(mount?.fsType, "hugetlbfs");
    assert.ok(mount?.superOptions.includes("pagesize=2M"), mount?.superOptions.join());
    await engine.volumes.unmount(uidOf(pod));
  }
  assert.deepEqual(await engine.mounts(), []);
});

const twoSizes = { limits: { "hugepages-2Mi": "4Mi", "hugepages-1Gi": "1Gi" } };
for (const [medium, resources, problem] of [
  ["Paper", {}, 'unknown storage medium "Paper"'],
  ["HugePages", {}, "medium HugePages: hugePages storage requested, but there is no resource request for huge pages"],
  ["HugePages", twoSizes, "medium: HugePages can't be used if container requests multiple huge page sizes"],
  [
    "HugePages-1Gi",
    { limits: { "hugepages-2Mi": "4Mi" } },
    "medium HugePages-1Gi: hugePages storage requested, but there is no resource request for huge pages",
  ],
] as const) {
  test(`refused: medium ${medium}, ${Object.keys(resources).length === 0 ? "no request" : "other requests"}`, async () => {
    await using engine = await VolumeNode.create();
    const mounts = [{ name: "v", mountPath: "/v" }];
    const pod = podWithVolumes([{ name: "v", emptyDir: { medium } }], {
      containers: [{ name: "c", image: "x", volumeMounts: mounts, resources }],
    });
    await assert.rejects(engine.volumes.mount(pod, never));
    assert.equal(engine.events[0]?.message, `MountVolume.SetUp failed for volume "v" : ${problem}`);
  });
}
