import assert from "node:assert/strict";
import { readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { isMountPoint } from "../../../connections/host/index.ts";
import { type IdentifiedPod, uidOf, type Volume } from "../../../ground/model/index.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

/** Mounts a pod with one volume and gives its directory. */
async function mounted(node: VolumeNode, volume: Volume, more: Partial<IdentifiedPod["spec"]> = {}) {
  const pod = podWithVolumes([volume], more);
  await node.volumes.mount(pod, never);
  const ready = node.volumes.of(uidOf(pod)).get(volume.name);
  assert.ok(ready?.type === "filesystem");
  return { pod, path: ready.hostPath, ready };
}

async function text(...path: readonly string[]): Promise<string> {
  return readFile(join(...path), "utf8");
}

test("config map: text, binary, items with their own mode, on disk, read-only for the pod", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("m", { a: "text", b: "other" }, { binaryData: { blob: "AAEC", b: "eA==" } });
  const all = await mounted(node, { name: "v", configMap: { name: "m" } });
  assert.equal(await text(all.path, "a"), "text");
  assert.equal(await text(all.path, "b"), "x", "binary data wins");
  assert.deepEqual([...(await readFile(join(all.path, "blob")))], [0, 1, 2]);
  assert.equal((await stat(join(all.path, "a"))).mode & 0o777, 0o644);
  assert.equal(await isMountPoint(all.path), false);
  assert.deepEqual(all.ready, { type: "filesystem", hostPath: all.path, readOnly: true, relabel: true });
  const items = [{ key: "a", path: "sub/dir/renamed", mode: 0o400 }];
  const some = await mounted(node, { name: "v", configMap: { name: "m", items, defaultMode: 0o600 } });
  assert.deepEqual(
    (await readdir(some.path)).filter((name) => !name.startsWith("..")),
    ["sub"],
  );
  assert.equal((await stat(join(some.path, "sub/dir/renamed"))).mode & 0o777, 0o400);
});

test("secret, downwardAPI and projected lie in memory, config maps on disk", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.secret("s", { k: "v" });
  for (const volume of [
    { name: "v", secret: { secretName: "s" } },
    { name: "v", downwardAPI: { items: [] } },
    { name: "v", projected: { sources: [] } },
  ]) {
    const { path } = await mounted(node, volume);
    assert.equal(await isMountPoint(path), true, path);
  }
});

test(
  "a pod's own data: labels and annotations follow the pod, resources fall back to the node's",
  needsRoot,
  async () => {
    await using node = await VolumeNode.create();
    const items = [
      { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
      { path: "one", fieldRef: { fieldPath: "metadata.annotations['k']" } },
      { path: "uid", fieldRef: { fieldPath: "metadata.uid" } },
      { path: "cpu", resourceFieldRef: { containerName: "main", resource: "limits.cpu" } },
    ];
    const volume = { name: "v", downwardAPI: { items } };
    const pod = podWithVolumes([volume], {}, { labels: { b: "2", a: "1" }, annotations: { k: "old" } });
    await node.volumes.mount(pod, never);
    const path = node.volumePath(uidOf(pod), "kubernetes.io/downward-api", "v");
    assert.equal(await text(path, "labels"), 'a="1"\nb="2"');
    assert.equal(await text(path, "one"), "old");
    assert.equal(await text(path, "uid"), pod.metadata.uid);
    assert.equal(await text(path, "cpu"), "4");
    node.volumes.want({ ...pod, metadata: { ...pod.metadata, annotations: { k: "new" } } });
    await until("the new annotation arrives", async () => (await text(path, "one")) === "new");
  },
);

for (const [name, volume, problem] of [
  ["secret", { secret: { secretName: "s" } }, 'secret "s" not found'],
  ["configMap", { configMap: { name: "m" } }, 'configmap "m" not found'],
  [
    "key of a config map",
    { configMap: { name: "there", items: [{ key: "k", path: "p" }] } },
    "configmap references non-existent config key: k",
  ],
  [
    "key of a secret",
    { secret: { secretName: "there", items: [{ key: "k", path: "p" }] } },
    "references non-existent secret key: k",
  ],
  [
    "projected, several",
    { projected: { sources: [{ secret: { name: "s" } }, { configMap: { name: "m" } }] } },
    '[secret "s" not found, configmap "m" not found]',
  ],
  [
    "path out of the volume",
    { configMap: { name: "there", items: [{ key: "a", path: "../../etc" }] } },
    "invalid path: must not contain '..': ../../etc",
  ],
  [
    "path of the writer itself",
    { configMap: { name: "there", items: [{ key: "a", path: "..data" }] } },
    "invalid path: must not start with '..': ..data",
  ],
  [
    "key with the name of the writer's link",
    { configMap: { name: "hostile" } },
    "invalid path: must not start with '..': ..data",
  ],
  [
    "token without an API server",
    { projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
    "failed to fetch token: cannot use TokenManager when kubelet is in standalone mode",
  ],
  [
    "trust bundle without an API server",
    { projected: { sources: [{ clusterTrustBundle: { path: "t", name: "x" } }] } },
    "ClusterTrustBundle projection is not supported in static kubelet mode",
  ],
] as const) {
  test(`refused, and nothing left: ${name}`, needsRoot, async () => {
    await using node = await VolumeNode.create();
    node.objects.configMap("there", { a: "1" });
    node.objects.secret("there", { a: "1" });
    node.objects.configMap("hostile", { "..data": "1" });
    const pod = podWithVolumes([{ name: "v", ...volume } as Volume]);
    await assert.rejects(node.volumes.mount(pod, never));
    assert.equal(node.events[0]?.message, `MountVolume.SetUp failed for volume "v" : ${problem}`);
    assert.deepEqual(await node.mounts(), []);
    await node.volumes.unmount(uidOf(pod));
    assert.deepEqual(await readdir(join(node.podsDir, uidOf(pod))).catch(() => []), []);
  });
}

test("optional: a missing object or key is an empty volume, filled as soon as it is there", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const { path } = await mounted(node, {
    name: "v",
    configMap: { name: "m", optional: true, items: [{ key: "a", path: "a" }] },
  });
  assert.deepEqual(
    (await readdir(path)).filter((entry) => !entry.startsWith("..")),
    [],
  );
  node.objects.configMap("m", { b: "1" });
  node.objects.configMap("m", { a: "2" });
  await until("the key arrives", async () => (await text(path, "a").catch(() => "")) === "2");
});

test(
  "an object that is deleted while mounted: files stay, an event tells, its return is followed",
  needsRoot,
  async () => {
    await using node = await VolumeNode.create();
    node.objects.secret("s", { k: "1" });
    const { path, pod } = await mounted(node, { name: "v", secret: { secretName: "s" } });
    node.objects.remove("secret", "s");
    await until("the event is there", () => node.events.length > 0);
    assert.equal(node.events[0]?.message, 'MountVolume.SetUp failed for volume "v" : secret "s" not found');
    assert.equal(await text(path, "k"), "1");
    assert.equal(node.volumes.of(uidOf(pod)).size, 1, "the pod keeps its volume");
    await node.volumes.mount(pod, never);
    node.objects.secret("s", { k: "2" });
    await until("the new content is there", async () => (await text(path, "k")) === "2");
  },
);

test("a projected volume whose one source fails keeps all its old files", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("m", { a: "1" });
  node.objects.secret("s", { k: "1" });
  const sources = [{ configMap: { name: "m" } }, { secret: { name: "s" } }];
  const { path } = await mounted(node, { name: "v", projected: { sources } });
  node.objects.remove("secret", "s");
  await until("the event is there", () => node.events.length > 0);
  node.objects.configMap("m", { a: "2" });
  await until("it was tried again", () => node.events.length > 1);
  assert.equal(await text(path, "a"), "1");
});

test("two sources with the same path: the later wins", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("m", { same: "map" });
  node.objects.secret("s", { same: "secret" });
  const sources = [{ configMap: { name: "m" } }, { secret: { name: "s" } }];
  const { path } = await mounted(node, { name: "v", projected: { sources } });
  assert.equal(await text(path, "same"), "secret");
});

test("immutable objects need no watch after they were read", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("m", { a: "1" }, { immutable: true });
  const { pod } = await mounted(node, { name: "v", configMap: { name: "m" } });
  assert.equal(node.objects.watches, 0);
  await node.volumes.unmount(uidOf(pod));
});

test("the group of the pod may read: modes and owners of files, directories and the volume", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.secret("s", { k: "1" });
  const volume = { name: "v", secret: { secretName: "s", defaultMode: 0o400 } };
  const { path } = await mounted(node, volume, { securityContext: { fsGroup: 4321 } });
  const look = async (name: string) => {
    const { mode, gid } = await stat(join(path, name));
    return [(mode & 0o7777).toString(8), gid];
  };
  assert.deepEqual(await look("k"), ["440", 4321]);
  assert.deepEqual(await look("..data"), ["2755", 4321]);
  node.objects.secret("s", { k: "2" });
  await until("the change arrives", async () => (await text(path, "k")) === "2");
  assert.deepEqual(await look("k"), ["440", 4321], "new files get their owner before anybody sees them");
});

test("room is made for volumes that are mounted inside this one", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("m", { a: "1" });
  const pod = podWithVolumes(
    [
      { name: "outer", configMap: { name: "m" } },
      { name: "inner", emptyDir: {} },
    ],
    {
      containers: [
        {
          name: "main",
          image: "x",
          volumeMounts: [
            { name: "outer", mountPath: "/etc/app" },
            { name: "inner", mountPath: "/etc/app/cache/deep" },
            { name: "inner", mountPath: "/etc/app/../escape" },
          ],
        },
      ],
    },
  );
  await node.volumes.mount(pod, never);
  const path = node.volumePath(uidOf(pod), "kubernetes.io/configmap", "outer");
  assert.equal((await stat(join(path, "cache/deep"))).isDirectory(), true);
  assert.equal((await stat(join(path, "cache"))).mode & 0o777, 0o755);
  assert.equal(await readlink(join(path, "a")), "..data/a");
});

test("what is secret is in no event and in no ledger", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.secret("s", { "..bad": "hush-hush", good: "hush-hush" });
  const pod = podWithVolumes([{ name: "v", secret: { secretName: "s" } }]);
  await assert.rejects(node.volumes.mount(pod, never), (error) => !String(error).includes("hush"));
  const said = JSON.stringify([node.events, node.ledger.read(uidOf(pod))]);
  assert.match(said, /must not start with/);
  assert.equal(said.includes("hush") || said.includes(Buffer.from("hush-hush").toString("base64")), false);
});
