import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { bareDisk } from "../../../../test/support/bare-disk.ts";
import { MemoryClaims } from "../../../../test/support/memory-claims.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes, VolumeNode, type VolumeNodeOptions } from "../../../../test/support/volume-node.ts";
import {
  isMountPoint,
  loadSyscalls,
  type RunTool,
  readMounts,
  runTool,
  ToolError,
} from "../../../connections/host/index.ts";
import { type PersistentVolumeSpec, uidOf, type Volume } from "../../../ground/model/index.ts";
import { VolumeError } from "../manager/volume-error.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const claimed = (claimName: string, readOnly = false): Volume => ({
  name: "v",
  persistentVolumeClaim: { claimName, readOnly },
});

async function nodeWith(options: VolumeNodeOptions = {}): Promise<{ node: VolumeNode; claims: MemoryClaims }> {
  const claims = new MemoryClaims();
  return { node: await VolumeNode.create({ claims, ...options }), claims };
}

async function refusal(node: VolumeNode, volume: Volume): Promise<VolumeError> {
  const error: unknown = await node.volumes.mount(podWithVolumes([volume]), never).catch((caught: unknown) => caught);
  assert.ok(error instanceof VolumeError, String(error));
  return error;
}

const good = { volumeName: "pv-c" };
const bound = { phase: "Bound" };
for (const { name, change, problem } of [
  {
    name: "no claim",
    change: (c: MemoryClaims) => c.claims.clear(),
    problem: 'failed to fetch PVC from API server: persistentvolumeclaims "c" not found',
  },
  {
    name: "the API is away",
    change: (c: MemoryClaims) => (c.outage = new Error("connection refused")),
    problem: "failed to fetch PVC from API server: connection refused",
  },
  {
    name: "being deleted",
    change: (c: MemoryClaims) =>
      c.claims.set("c", {
        metadata: { uid: "claim-c", deletionTimestamp: "2026-01-01T00:00:00Z" },
        spec: good,
        status: bound,
      }),
    problem: "PVC is being deleted",
  },
  {
    name: "not bound",
    change: (c: MemoryClaims) =>
      c.claims.set("c", { metadata: { uid: "claim-c" }, spec: good, status: { phase: "Pending" } }),
    problem: "PVC is not bound",
  },
  {
    name: "no volume name",
    change: (c: MemoryClaims) => c.claims.set("c", { metadata: { uid: "claim-c" }, spec: {}, status: bound }),
    problem: "PVC has empty pvc.Spec.VolumeName",
  },
  {
    name: "no volume",
    change: (c: MemoryClaims) => c.persistentVolumes.clear(),
    problem: 'failed to fetch PV pv-c from API server: persistentvolumes "pv-c" not found',
  },
  {
    name: "volume without a claim",
    change: (c: MemoryClaims) => c.persistentVolumes.set("pv-c", { metadata: { name: "pv-c" }, spec: {} }),
    problem: "found PV object pv-c but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim",
  },
  {
    name: "volume of another claim",
    change: (c: MemoryClaims) =>
      c.persistentVolumes.set("pv-c", { metadata: { name: "pv-c" }, spec: { claimRef: { uid: "other" } } }),
    problem: "found PV object pv-c but its pv.Spec.ClaimRef.UID other does not point to claim.UID claim-c",
  },
  {
    name: "block volume in volumeMounts",
    change: (c: MemoryClaims) => c.bind("c", { volumeMode: "Block", local: { path: "/dev/null" } }),
    problem: "volume v has volumeMode Block, but is specified in volumeMounts",
  },
]) {
  test(`a claim can't be used: ${name}`, async () => {
    const { node, claims } = await nodeWith();
    await using _ = node;
    claims.bind("c", { hostPath: { path: "/tmp" } });
    change(claims);
    const { message, isAnnounced } = await refusal(node, claimed("c"));
    assert.equal(
      message,
      `unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: error processing PVC default/c: ${problem}`,
    );
    assert.equal(isAnnounced, false);
  });
}

test("a claim that is deleted but protected is still good; one that is bound late is found", needsRoot, async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  claims.bind("c", { hostPath: { path: "/tmp" } });
  const metadata = {
    uid: "claim-c",
    deletionTimestamp: "2026-01-01T00:00:00Z",
    finalizers: ["kubernetes.io/pvc-protection"],
  };
  claims.claims.set("c", { metadata, spec: good, status: { phase: "Pending" } });
  const pod = podWithVolumes([claimed("c", true)]);
  await assert.rejects(node.volumes.mount(pod, never), /PVC is not bound/);
  claims.claims.set("c", { metadata, spec: good, status: bound });
  node.volumes.retryNow();
  await until("the pod is told", () => node.ready.length === 1);
  assert.deepEqual(node.volumes.of(uidOf(pod)).get("v"), {
    type: "filesystem",
    hostPath: "/tmp",
    readOnly: true,
    relabel: false,
  });
});

test("a generic ephemeral volume: the claim must have been made for this pod", needsRoot, async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  const volume: Volume = {
    name: "v",
    ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"] } } },
  };
  const pod = podWithVolumes([volume], {}, { name: "web" });
  claims.bind("web-v", { hostPath: { path: "/tmp" } });
  await assert.rejects(
    node.volumes.mount(pod, never),
    /PVC default\/web-v was not created for pod default\/web \(pod is not owner\)/,
  );
  const claim = claims.claims.get("web-v");
  const owner = { apiVersion: "v1", kind: "Pod", name: "web", uid: pod.metadata.uid, controller: true };
  claims.claims.set("web-v", { ...claim, metadata: { ...claim?.metadata, ownerReferences: [owner] } });
  node.volumes.retryNow();
  await until("the pod is told", () => node.ready.length === 1);
  await node.volumes.mount(pod, never);
});

for (const { name, terms, reachable } of [
  {
    name: "label in the list",
    terms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["a", "b"] }] }],
    reachable: true,
  },
  {
    name: "another label",
    terms: [{ matchExpressions: [{ key: "zone", operator: "In", values: ["b"] }] }],
    reachable: false,
  },
  {
    name: "this node by name",
    terms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["node-1"] }] }],
    reachable: true,
  },
  {
    name: "one of two terms",
    terms: [
      { matchExpressions: [{ key: "disk", operator: "Exists" }] },
      { matchExpressions: [{ key: "disk", operator: "DoesNotExist" }] },
    ],
    reachable: true,
  },
  { name: "an empty term matches nothing", terms: [{}], reachable: false },
]) {
  test(`node affinity: ${name}`, async () => {
    const { node, claims } = await nodeWith();
    await using _ = node;
    claims.bind("c", { hostPath: { path: "/tmp" }, nodeAffinity: { required: { nodeSelectorTerms: terms } } });
    if (reachable) await node.volumes.mount(podWithVolumes([claimed("c")]), never);
    else {
      await refusal(node, claimed("c"));
      assert.equal(
        node.events[0]?.message,
        'MountVolume.NodeAffinity check failed for volume "pv-c" : no matching NodeSelectorTerms',
      );
    }
  });
}

test("options for mount(8) only where the kind takes them; the annotation wins", async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  claims.bind("c", { hostPath: { path: "/tmp" }, mountOptions: ["noatime"] });
  await refusal(node, claimed("c"));
  assert.equal(
    node.events[0]?.message,
    'MountVolume.MountOptionSupport check failed for volume "pv-c" : mount options are not supported for this volume type',
  );
});

test("groups of persistent volumes are handed on", needsRoot, async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  claims.bind("c", { hostPath: { path: "/tmp" } }, { annotations: { "pv.beta.kubernetes.io/gid": "1234" } });
  const pod = podWithVolumes([claimed("c")]);
  await node.volumes.mount(pod, never);
  assert.deepEqual(node.volumes.groupsOf(uidOf(pod)), [1234]);
});

test("ReadWriteOncePod: a second pod waits until the first is gone", needsRoot, async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  claims.bind("c", { hostPath: { path: "/tmp" }, accessModes: ["ReadWriteOncePod"] });
  const [first, second] = [podWithVolumes([claimed("c")]), podWithVolumes([claimed("c")])];
  await node.volumes.mount(first, never);
  await assert.rejects(
    node.volumes.mount(second, never),
    /volume uses the ReadWriteOncePod access mode and is already in use by another pod/,
  );
  await node.volumes.unmount(uidOf(first));
  node.volumes.retryNow();
  await until("the second gets it", () => node.ready.includes(uidOf(second)));
});

async function localDirectory(node: VolumeNode): Promise<string> {
  const path = join(node.root, "disk");
  await mkdir(path);
  await writeFile(join(path, "data"), "1");
  return path;
}

test(
  "local directory: bound into the pod's directory, read-only where asked, data kept at the end",
  needsRoot,
  async () => {
    const { node, claims } = await nodeWith();
    await using _ = node;
    const path = await localDirectory(node);
    claims.bind("c", { local: { path }, mountOptions: ["noexec"] });
    const [writer, reader] = [podWithVolumes([claimed("c")]), podWithVolumes([claimed("c", true)])];
    await node.volumes.mount(writer, never);
    await node.volumes.mount(reader, never);
    const at = (pod: typeof writer) => node.volumePath(uidOf(pod), "kubernetes.io/local-volume", "pv-c");
    await writeFile(join(at(writer), "data"), "2");
    assert.equal(await readFile(join(at(reader), "data"), "utf8"), "2");
    await assert.rejects(writeFile(join(at(reader), "data"), "3"), { code: "EROFS" });
    const mount = (await readMounts()).find(({ mountPoint }) => mountPoint === at(writer));
    assert.ok(mount?.options.includes("noexec"), mount?.options.join());
    for (const pod of [writer, reader]) await node.volumes.unmount(uidOf(pod));
    assert.deepEqual(await node.mounts(), []);
    assert.equal(await readFile(join(path, "data"), "utf8"), "2");
  },
);

test("local directory: only the first pod may change its group", needsRoot, async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  const path = await localDirectory(node);
  claims.bind("c", { local: { path } });
  const first = podWithVolumes([claimed("c")], { securityContext: { fsGroup: 1111 } });
  const second = podWithVolumes([claimed("c")], { securityContext: { fsGroup: 2222 } });
  await node.volumes.mount(first, never);
  await node.volumes.mount(second, never);
  assert.equal((await stat(join(path, "data"))).gid, 1111);
  assert.deepEqual(
    node.events.map(({ reason, message }) => [reason, message]),
    [
      [
        "AlreadyMountedVolume",
        "The requested fsGroup is 2222, but the volume pv-c has GID 1111. The volume may not be shareable.",
      ],
    ],
  );
});

test("local: neither directory nor disk, or not there", needsRoot, async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  claims.bind("c", { local: { path: "/dev/null" } });
  claims.bind("d", { local: { path: "/nowhere" } });
  await refusal(node, claimed("c"));
  await refusal(node, claimed("d"));
  assert.deepEqual(
    node.events.map(({ message }) => message),
    [
      'MountVolume.MountDevice failed for volume "pv-c" : only directory and block device are supported',
      'MountVolume.NewMounter initialization failed for volume "pv-d" : path "/nowhere" does not exist: ENOENT: no such file or directory, stat \'/nowhere\'',
    ],
  );
});

test("local disk: formatted once, mounted once for all pods, and let go after the last", needsRoot, async (t) => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  const device = bareDisk(t, node.root);
  if (device === undefined) return;
  claims.bind("c", { local: { path: device } });
  const [a, b] = [podWithVolumes([claimed("c")]), podWithVolumes([claimed("c")])];
  await Promise.all([node.volumes.mount(a, never), node.volumes.mount(b, never)]);
  const disk = join(node.root, "plugins/kubernetes.io/local-volume/mounts/pv-c");
  assert.equal(await isMountPoint(disk), true);
  await writeFile(join(disk, "kept"), "1");
  assert.equal(
    await readFile(join(node.volumePath(uidOf(b), "kubernetes.io/local-volume", "pv-c"), "kept"), "utf8"),
    "1",
  );
  await node.volumes.unmount(uidOf(a));
  assert.equal(await isMountPoint(disk), true);
  await node.volumes.unmount(uidOf(b));
  assert.deepEqual(await node.mounts(), []);
  // Another pod finds the file system, and the data in it.
  await node.volumes.mount(a, never);
  assert.equal(await readFile(join(disk, "kept"), "utf8"), "1");
  // The agent ends between the pod's part and the disk's: the next one lets the disk go.
  await (await loadSyscalls()).unmount(node.volumePath(uidOf(a), "kubernetes.io/local-volume", "pv-c"), 0);
  await rm(join(node.podsDir, uidOf(a)), { recursive: true });
  await node.restart();
  await node.volumes.cleanOrphanedDirectories(new Set(), never);
  assert.deepEqual(await node.mounts(), []);
});

test("block mode: the device under a name of the pod, held open, read-only where asked", needsRoot, async (t) => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  const device = bareDisk(t, node.root);
  if (device === undefined) return;
  claims.bind("c", { local: { path: device }, volumeMode: "Block" });
  const spec = { containers: [{ name: "main", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }] };
  const pod = podWithVolumes([claimed("c", true)], spec);
  await node.volumes.mount(pod, never);
  const link = join(node.podsDir, uidOf(pod), "volumeDevices/kubernetes.io~local-volume/pv-c");
  assert.deepEqual(node.volumes.of(uidOf(pod)).get("v"), { type: "block", devicePath: link, readOnly: true });
  const bound = await readlink(link);
  assert.equal(bound, join(node.root, "plugins/kubernetes.io/local-volume/volumeDevices/pv-c", uidOf(pod)));
  assert.equal((await stat(bound)).rdev, (await stat(device)).rdev);
  assert.match(execFileSync("losetup", ["-j", bound], { encoding: "utf8" }), /loop/);
  await node.restart();
  await node.volumes.mount(pod, never);
  assert.equal((await node.mounts()).length, 1);
  await node.volumes.unmount(uidOf(pod));
  assert.deepEqual(await node.mounts(), []);
  assert.equal(execFileSync("losetup", ["-j", bound], { encoding: "utf8" }), "");
});

test("block mode: a file system volume in volumeDevices is refused", async () => {
  const { node, claims } = await nodeWith();
  await using _ = node;
  claims.bind("c", { hostPath: { path: "/tmp" } });
  const spec = { containers: [{ name: "main", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }] };
  await assert.rejects(
    node.volumes.mount(podWithVolumes([claimed("c")], spec), never),
    /volume v has volumeMode Filesystem, but is specified in volumeDevices/,
  );
});

/** In place of mount(8): mounts memory where it was told to mount the server's directory. */
function fileServer(commands: string[][]): RunTool {
  return async (program, args) => {
    commands.push([program, ...args]);
    const target = args.at(-1) ?? "";
    const calls = await loadSyscalls();
    if (program === "umount") await calls.unmount(target, 0);
    else if (args.some((arg) => arg.startsWith("away:")))
      throw new ToolError(program, args, 32, "Connection refused", undefined);
    else calls.mount("tmpfs", target, "tmpfs", 0, "size=1m");
    return "";
  };
}

for (const { name, source, options } of [
  { name: "name", source: { nfs: { server: "files", path: "/export" } }, options: [] },
  { name: "IPv6 address", source: { nfs: { server: "fd00::1", path: "/export" } }, options: [] },
  {
    name: "options",
    source: { nfs: { server: "files", path: "/export" }, mountOptions: ["nfsvers=4.1", "hard"] },
    options: ["-o", "nfsvers=4.1,hard"],
  },
] as const) {
  test(`nfs: server by ${name}`, needsRoot, async () => {
    const commands: string[][] = [];
    const { node, claims } = await nodeWith({ run: fileServer(commands) });
    await using _ = node;
    claims.bind("c", source as Partial<PersistentVolumeSpec>);
    const pod = podWithVolumes([claimed("c")]);
    await node.volumes.mount(pod, never);
    const path = node.volumePath(uidOf(pod), "kubernetes.io/nfs", "pv-c");
    const host = name === "IPv6 address" ? "[fd00::1]" : "files";
    assert.deepEqual(commands, [["mount", "-t", "nfs", ...options, "--", `${host}:/export`, path]]);
    await node.restart();
    await node.volumes.mount(pod, never);
    assert.equal(commands.length, 1, "what is mounted already is not mounted again");
    await node.volumes.unmount(uidOf(pod));
    assert.deepEqual(commands.at(-1), ["umount", path]);
    assert.deepEqual(await node.mounts(), []);
  });
}

test(
  "nfs: a server that does not answer leaves no directory, and the words of mount(8) reach the event",
  needsRoot,
  async () => {
    const { node } = await nodeWith({ run: fileServer([]) });
    await using _ = node;
    const pod = podWithVolumes([{ name: "v", nfs: { server: "away", path: "/x", readOnly: true } }]);
    await assert.rejects(node.volumes.mount(pod, never), VolumeError);
    const path = node.volumePath(uidOf(pod), "kubernetes.io/nfs", "v");
    assert.equal(
      node.events[0]?.message,
      `MountVolume.SetUp failed for volume "v" : mount -t nfs -o ro -- away:/x ${path} exited with 32: Connection refused`,
    );
    await assert.rejects(stat(path), { code: "ENOENT" });
  },
);

test("attack: words of a shell, and options, in the names of servers and paths stay names", needsRoot, async () => {
  const { node, claims } = await nodeWith({ run: runTool });
  await using _ = node;
  const planted = join(node.root, "planted");
  for (const server of [`x;touch ${planted}`, `$(touch ${planted})`, "-oremount", `--fstab=${planted}`]) {
    const pod = podWithVolumes([{ name: "v", nfs: { server, path: `/x\`touch ${planted}\`` } }]);
    await assert.rejects(node.volumes.mount(pod, never), VolumeError);
    await node.volumes.unmount(uidOf(pod));
  }
  // As in CVE-2023-5528: the path of a local volume was handed to a shell.
  const path = join(node.root, `$(touch planted);touch planted &`);
  await mkdir(path);
  claims.bind("c", { local: { path } });
  const pod = podWithVolumes([claimed("c")]);
  await node.volumes.mount(pod, never);
  await node.volumes.unmount(uidOf(pod));
  await assert.rejects(stat(planted), { code: "ENOENT" });
  await assert.rejects(stat("planted"), { code: "ENOENT" });
});

test("image volumes are left to the runtime", async () => {
  const { node } = await nodeWith({ withImages: true });
  await using _ = node;
  const volume = { name: "v", image: { reference: "tools:1" } };
  const pod = podWithVolumes([volume]);
  await node.volumes.mount(pod, never);
  assert.deepEqual(node.volumes.of(uidOf(pod)).get("v"), { type: "image", image: "tools:1" });
  await node.volumes.unmount(uidOf(pod));
});
