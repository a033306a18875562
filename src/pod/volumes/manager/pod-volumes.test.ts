import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes, VolumeNode } from "../../../../test/support/volume-node.ts";
import { isMountPoint, loadSyscalls, mountFlags, unmountFlags } from "../../../connections/host/index.ts";
import { type PodUid, uidOf } from "../../../ground/model/index.ts";
import { VolumeError } from "./volume-error.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;

test("volumes that no container uses are never made", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const pod = podWithVolumes(
    [
      { name: "used", emptyDir: {} },
      { name: "idle", configMap: { name: "absent" } },
    ],
    { containers: [{ name: "main", image: "x", volumeMounts: [{ name: "used", mountPath: "/used" }] }] },
  );
  await node.volumes.mount(pod, never);
  assert.deepEqual([...node.volumes.of(uidOf(pod)).keys()], ["used"]);
  assert.deepEqual(node.events, []);
});

test("a pod comes and goes without a trace, and its neighbour stays", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("settings", { a: "1" });
  node.objects.secret("keys", { k: "hush" });
  const volumes = [
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "settings", configMap: { name: "settings" } },
    { name: "keys", secret: { secretName: "keys" } },
    { name: "self", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
  ];
  const [pod, other] = [podWithVolumes(volumes), podWithVolumes(volumes)];
  await Promise.all([node.volumes.mount(pod, never), node.volumes.mount(other, never)]);
  assert.equal(node.volumes.of(uidOf(pod)).size, 5);
  assert.equal((await node.mounts()).length, 6);
  assert.equal(node.objects.watches, 2, "two pods share one watch per object");

  await node.volumes.unmount(uidOf(pod));
  assert.equal((await node.mounts()).length, 3);
  assert.deepEqual(await readdir(join(node.podsDir, uidOf(pod))), []);
  assert.equal(node.volumes.of(uidOf(pod)).size, 0);
  assert.equal(
    await readFile(join(node.volumePath(uidOf(other), "kubernetes.io/secret", "keys"), "k"), "utf8"),
    "hush",
  );

  await node.volumes.unmount(uidOf(other));
  assert.deepEqual(await node.mounts(), []);
  assert.equal(node.objects.watches, 0);
  assert.deepEqual(node.volumes.size, { pods: 0, tasks: 0, objects: 0, running: 0 });
});

test(
  "a missing object: told once per try with the text users know; the pod is woken when it arrives",
  needsRoot,
  async () => {
    const clock = new FakeClock();
    await using node = await VolumeNode.create({ clock });
    const pod = podWithVolumes([
      { name: "keys", secret: { secretName: "late" } },
      { name: "scratch", emptyDir: {} },
    ]);
    const refused = node.volumes.mount(pod, never);
    await assert.rejects(refused, (error) => {
      assert.ok(error instanceof VolumeError);
      assert.match(
        error.message,
        /^unmounted volumes=\[keys( scratch)?\], unattached volumes=\[\], failed to process volumes=\[\]: /,
      );
      assert.match(error.message, /MountVolume\.SetUp failed for volume "keys" : secret "late" not found$/);
      assert.equal(error.isAnnounced, true);
      assert.equal(error.nextTryAt, clock.now() + 500);
      return true;
    });
    assert.deepEqual(node.events, [
      {
        pod: pod.metadata.name,
        type: "Warning",
        reason: "FailedMount",
        message: 'MountVolume.SetUp failed for volume "keys" : secret "late" not found',
      },
    ]);
    // Asking again before the next try is due says the same and tries nothing.
    await assert.rejects(node.volumes.mount(pod, never), VolumeError);
    assert.equal(node.events.length, 1);

    node.objects.secret("late", { k: "v" });
    await until("the pod is told", () => node.ready.length > 0);
    assert.deepEqual(node.ready, [uidOf(pod)]);
    await node.volumes.mount(pod, never);
    assert.equal(node.volumes.of(uidOf(pod)).size, 2);
  },
);

test(
  "after a failure the next try comes in 0.5 s, then twice as late each time up to 2 min 2 s",
  needsRoot,
  async () => {
    const clock = new FakeClock();
    await using node = await VolumeNode.create({ clock });
    const pod = podWithVolumes([{ name: "host", hostPath: { path: "/nowhere/at/all", type: "Directory" } }]);
    const delays: number[] = [];
    for (let turn = 1; turn <= 10; turn++) {
      const refusal: unknown = await node.volumes.mount(pod, never).catch((error: unknown) => error);
      assert.ok(refusal instanceof VolumeError);
      const delayMs = (refusal.nextTryAt ?? 0) - clock.now();
      delays.push(delayMs);
      await clock.advance(delayMs - 1);
      assert.equal(node.events.length, turn, "not before its time");
      await clock.advance(1);
      await until("it is tried again", () => node.events.length > turn);
    }
    assert.deepEqual(delays, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 122_000, 122_000]);
    assert.match(node.events[0]?.message ?? "", /hostPath type check failed: \/nowhere\/at\/all is not a directory$/);
  },
);

test("a volume of no known kind, and a claim without an API server, can't be processed", async () => {
  await using node = await VolumeNode.create();
  for (const [volume, problem] of [
    [
      { name: "v", flexVolume: { driver: "x/y" } },
      /failed to process volumes=\[v\]: failed to get Plugin from volumeSpec for volume "v" err=no volume plugin matched/,
    ],
    [{ name: "v", image: { reference: "x" } }, /no volume plugin matched/],
    [
      { name: "v", persistentVolumeClaim: { claimName: "c" } },
      /error processing PVC default\/c: there is no API server/,
    ],
  ] as const) {
    await assert.rejects(node.volumes.mount(podWithVolumes([volume]), never), (error) => {
      assert.ok(error instanceof VolumeError);
      assert.match(error.message, problem);
      assert.equal(error.isAnnounced, false, "no event names the volume yet");
      return true;
    });
  }
  assert.deepEqual(node.events, []);
});

test("giving up a pod that still mounts ends its tries and removes what there is", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const pod = podWithVolumes([
    { name: "keys", secret: { secretName: "never" } },
    { name: "scratch", emptyDir: { medium: "Memory" } },
  ]);
  const stop = new AbortController();
  const mounting = node.volumes.mount(pod, stop.signal);
  stop.abort(new Error("deleted"));
  await assert.rejects(mounting, /deleted/);
  await node.volumes.unmount(uidOf(pod));
  assert.deepEqual(await node.mounts(), []);
  assert.equal(node.objects.watches, 0);
  const said = node.events.length;
  node.objects.secret("never", {});
  await settle(20);
  assert.equal(node.events.length, said);
  assert.deepEqual(node.ready, []);
});

test("after a restart, volumes of a running pod keep their data and follow changes again", needsRoot, async () => {
  await using node = await VolumeNode.create();
  node.objects.configMap("settings", { a: "1" });
  const pod = podWithVolumes([
    { name: "disk", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
    { name: "settings", configMap: { name: "settings" } },
  ]);
  const uid = uidOf(pod);
  await node.volumes.mount(pod, never);
  const [disk, memory, settings] = [
    node.volumePath(uid, "kubernetes.io/empty-dir", "disk"),
    node.volumePath(uid, "kubernetes.io/empty-dir", "memory"),
    node.volumePath(uid, "kubernetes.io/configmap", "settings"),
  ];
  await writeFile(join(disk, "data"), "kept");
  await writeFile(join(memory, "data"), "kept too");
  const before = await stat(join(settings, "..data/a"));

  await node.restart();
  node.volumes.want(pod);
  await until("the volumes are known again", () => node.volumes.of(uid).size === 3);
  assert.equal(await readFile(join(disk, "data"), "utf8"), "kept");
  assert.equal(await readFile(join(memory, "data"), "utf8"), "kept too");
  assert.equal((await stat(join(settings, "..data/a"))).ino, before.ino, "unchanged content is not written again");
  assert.equal((await node.mounts()).length, 1);

  node.objects.configMap("settings", { a: "2" });
  await until("the change arrives", async () => (await readFile(join(settings, "a"), "utf8")) === "2");
});

test(
  "after a restart, volumes of a pod that nobody wants any more are taken away from disk alone",
  needsRoot,
  async () => {
    await using node = await VolumeNode.create();
    node.objects.secret("keys", { k: "v" });
    const pod = podWithVolumes([
      { name: "memory", emptyDir: { medium: "Memory" } },
      { name: "keys", secret: { secretName: "keys" } },
    ]);
    await node.volumes.mount(pod, never);
    await node.restart();
    node.objects.remove("secret", "keys");
    assert.deepEqual(await node.volumes.orphanedDirectories(new Set([uidOf(pod)])), []);
    assert.deepEqual(await node.volumes.orphanedDirectories(new Set()), [uidOf(pod)]);
    const report = await node.volumes.cleanOrphanedDirectories(new Set(), never);
    assert.deepEqual(report, { removed: [uidOf(pod)], problems: [] });
    assert.deepEqual(await readdir(node.podsDir), []);
    assert.deepEqual(await node.mounts(), []);
  },
);

test("orphaned: known pods and pods being mounted are left alone", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const [known, wanted] = [
    podWithVolumes([{ name: "a", emptyDir: {} }]),
    podWithVolumes([{ name: "a", emptyDir: {} }]),
  ];
  await node.volumes.mount(known, never);
  await node.restart();
  await node.volumes.mount(wanted, never);
  const report = await node.volumes.cleanOrphanedDirectories(new Set([uidOf(known)]), never);
  assert.deepEqual(report, { removed: [], problems: [] });
  assert.deepEqual((await readdir(node.podsDir)).sort(), [uidOf(known), uidOf(wanted)].sort());
});

test("orphaned: a file of an unknown kind of volume, or a live mount in one, is never removed", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const calls = await loadSyscalls();
  const file = join(node.podsDir, "uid-a/volumes/example.com~flex/data");
  const mounted = join(node.podsDir, "uid-b/volumes/example.com~flex/data");
  const elsewhere = join(node.root, "elsewhere");
  for (const directory of [file, mounted, elsewhere]) await mkdir(directory, { recursive: true });
  await writeFile(join(file, "precious"), "1");
  await writeFile(join(elsewhere, "precious"), "2");
  calls.mount(elsewhere, mounted, "", mountFlags.bind);
  try {
    const { removed, problems } = await node.volumes.cleanOrphanedDirectories(new Set(), never);
    assert.deepEqual(removed, []);
    assert.deepEqual(problems.map(({ uid }) => uid).sort(), ["uid-a", "uid-b"]);
    for (const { message } of problems)
      assert.match(message, /^orphaned pod "uid-[ab]" found, but mounted volumes=\[data\]: /);
    assert.equal(await readFile(join(file, "precious"), "utf8"), "1");
    assert.equal(await readFile(join(mounted, "precious"), "utf8"), "2");
    assert.equal(await isMountPoint(mounted), true);
  } finally {
    await calls.unmount(mounted, unmountFlags.detach);
  }
});

test("what will not go says since when it was told to, over tries and a restart", needsRoot, async () => {
  const clock = new FakeClock();
  await using node = await VolumeNode.create({ clock });
  const uid = "uid-a" as PodUid;
  const stuck = join(node.podsDir, uid, "volumes/example.com~flex/data");
  await mkdir(stuck, { recursive: true });
  await writeFile(join(stuck, "precious"), "1");
  const toldAt = clock.now();
  for (let tries = 0; tries < 2; tries++) {
    await assert.rejects(node.volumes.unmount(uid), VolumeError);
    assert.deepEqual(await node.volumes.leaving(undefined), [{ uid, since: toldAt }]);
    await clock.advance(60_000);
  }
  await node.restart();
  await utimes(join(node.podsDir, uid), 1_000, 1_000);
  const left = [{ uid, since: 1_000_000 }];
  assert.deepEqual(await node.volumes.leaving(new Set([uid])), []);
  assert.deepEqual(await node.volumes.leaving(new Set()), left);
  assert.equal((await node.volumes.cleanOrphanedDirectories(new Set(), never)).problems.length, 1);
  assert.deepEqual(await node.volumes.leaving(new Set()), left);
  await rm(join(node.podsDir, uid), { recursive: true });
  await node.volumes.cleanOrphanedDirectories(new Set(), never);
  assert.deepEqual(await node.volumes.leaving(new Set()), []);
});

test("orphaned: what else lies in a pod's directory goes, but nothing below a mount", needsRoot, async () => {
  await using node = await VolumeNode.create();
  const calls = await loadSyscalls();
  const [plain, busy] = [join(node.podsDir, "uid-a"), join(node.podsDir, "uid-b")];
  await mkdir(join(plain, "containers/main"), { recursive: true });
  await writeFile(join(plain, "containers/main/1234"), "");
  await writeFile(join(plain, "etc-hosts"), "");
  await mkdir(join(busy, "containers/main"), { recursive: true });
  const elsewhere = join(node.root, "elsewhere");
  await mkdir(elsewhere);
  await writeFile(join(elsewhere, "precious"), "1");
  calls.mount(elsewhere, join(busy, "containers/main"), "", mountFlags.bind);
  try {
    const { removed, problems } = await node.volumes.cleanOrphanedDirectories(new Set(), never);
    assert.deepEqual(removed, ["uid-a" as PodUid]);
    assert.match(problems[0]?.message ?? "", /cannot delete directory .*uid-b\/containers\/main: it is a mount point/);
    assert.equal(await readFile(join(elsewhere, "precious"), "utf8"), "1");
  } finally {
    await calls.unmount(join(busy, "containers/main"), unmountFlags.detach);
  }
});

test(
  "a mount that a container left inside its scratch volume is taken off; the data behind it stays",
  needsRoot,
  async () => {
    await using node = await VolumeNode.create();
    const calls = await loadSyscalls();
    const pod = podWithVolumes([{ name: "scratch", emptyDir: {} }]);
    await node.volumes.mount(pod, never);
    const inside = join(node.volumePath(uidOf(pod), "kubernetes.io/empty-dir", "scratch"), "mnt");
    const elsewhere = join(node.root, "elsewhere");
    await mkdir(inside);
    await mkdir(join(elsewhere, "deeper"), { recursive: true });
    await writeFile(join(elsewhere, "precious"), "1");
    // Shared with its origin, and with something mounted further inside: that must survive at the origin.
    calls.mount(elsewhere, elsewhere, "", mountFlags.bind);
    calls.mount("none", elsewhere, "", mountFlags.shared);
    calls.mount("tmpfs", join(elsewhere, "deeper"), "tmpfs", 0, "size=1m");
    await writeFile(join(elsewhere, "deeper/precious"), "2");
    calls.mount(elsewhere, inside, "", mountFlags.bind | mountFlags.recursive);
    await node.volumes.unmount(uidOf(pod));
    assert.equal(await readFile(join(elsewhere, "precious"), "utf8"), "1");
    assert.equal(await readFile(join(elsewhere, "deeper/precious"), "utf8"), "2");
    await assert.rejects(stat(inside), { code: "ENOENT" });
  },
);

test("the ledger says what a pod waits for and how the waiting ended", needsRoot, async () => {
  const clock = new FakeClock();
  await using node = await VolumeNode.create({ clock });
  const pod = podWithVolumes([{ name: "keys", secret: { secretName: "late" } }]);
  node.objects.outage = new Error("away");
  const mounting = node.volumes.mount(pod, never).catch((error: unknown) => error);
  await settle();
  assert.match(node.ledger.read(uidOf(pod))?.blocker?.message ?? "", /volumes are being mounted: keys/);
  await clock.advance(1_000);
  assert.match(String(await mounting), /failed to sync secret cache: timed out waiting for the condition/);
  const entries = node.ledger.read(uidOf(pod))?.entries ?? [];
  assert.deepEqual(
    entries.map(({ step, subject, outcome }) => [step, subject, outcome]),
    [["volumes", "keys", "failed"]],
  );
});
