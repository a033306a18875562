import assert from "node:assert/strict";
import { mkdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { TestFlexDriver } from "../../../../test/support/flex-driver.ts";
import { MemoryClaims } from "../../../../test/support/memory-claims.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes, VolumeNode, type VolumeNodeOptions } from "../../../../test/support/volume-node.ts";
import { isMountPoint } from "../../../connections/host/index.ts";
import { ifThere, isThere } from "../../../ground/base/index.ts";
import {
  type FlexVolumeSource,
  type IdentifiedPod,
  type PodUid,
  uidOf,
  type Volume,
} from "../../../ground/model/index.ts";
import { type Attachment, VolumesInUse } from "../attaching/volumes-in-use.ts";
import { VolumeError } from "../manager/volume-error.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const name = "example.com/disk";
const flex = (more: Partial<FlexVolumeSource> = {}): Volume => ({ name: "v", flexVolume: { driver: name, ...more } });
const claimed: Volume = { name: "v", persistentVolumeClaim: { claimName: "c" } };

class FlexNode implements AsyncDisposable {
  readonly node: VolumeNode;
  readonly claims: MemoryClaims;
  readonly driver: TestFlexDriver;

  private constructor(node: VolumeNode, claims: MemoryClaims) {
    this.node = node;
    this.claims = claims;
    this.driver = new TestFlexDriver(join(node.root, "flex"));
  }

  static async create(
    installed: Parameters<TestFlexDriver["install"]>[0] | undefined,
    options: VolumeNodeOptions = {},
  ): Promise<FlexNode> {
    const claims = new MemoryClaims();
    claims.bind("c", { flexVolume: { driver: name, fsType: "ext4", options: { size: "1" } } });
    const flexNode = new FlexNode(await VolumeNode.create({ claims, ...options }), claims);
    if (installed !== undefined) await flexNode.driver.install(installed);
    await flexNode.node.volumes.restore();
    return flexNode;
  }

  place(pod: IdentifiedPod, volume = "v"): string {
    return this.node.volumePath(uidOf(pod), name, volume);
  }

  devicePlace(volume: string): string {
    return join(this.node.root, "plugins/kubernetes.io/flexvolume", name, "mounts", volume);
  }

  async refusal(pod: IdentifiedPod): Promise<string> {
    const error: unknown = await this.node.volumes.mount(pod, never).catch((caught: unknown) => caught);
    assert.ok(error instanceof VolumeError, String(error));
    return error.message;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.node[Symbol.asyncDispose]();
  }
}

test("a driver mounts and unmounts the volume of a pod, and is told all about it", needsRoot, async () => {
  await using flexNode = await FlexNode.create({ capabilities: { supportsMetrics: true, selinuxRelabel: false } });
  const { node, driver } = flexNode;
  node.objects.secret("s", { key: "top secret" }, { type: name });
  const pod = podWithVolumes([flex({ fsType: "xfs", options: { a: "<1>" }, secretRef: { name: "s" } })], {
    serviceAccountName: "robot",
    securityContext: { fsGroup: 4321 },
  });
  await node.volumes.mount(pod, never);
  const place = flexNode.place(pod);
  assert.equal(place, join(node.podsDir, uidOf(pod), "volumes/example.com~disk/v"));
  assert.ok(await isMountPoint(place));
  assert.equal((await stat(place)).gid, 4321);
  assert.deepEqual(node.volumes.of(uidOf(pod)).get("v"), {
    type: "filesystem",
    hostPath: place,
    readOnly: false,
    relabel: false,
  });
  assert.equal((await node.volumes.measure(uidOf(pod), never)).length, 1);
  const [call = ""] = await driver.calls();
  assert.ok(call.startsWith(`mount ${place} {"a":"\\u003c1\\u003e"`), call);
  assert.deepEqual(JSON.parse(call.slice(`mount ${place} `.length)), {
    a: "<1>",
    "kubernetes.io/fsType": "xfs",
    "kubernetes.io/readwrite": "rw",
    "kubernetes.io/pvOrVolumeName": "v",
    "kubernetes.io/pod.name": pod.metadata.name,
    "kubernetes.io/pod.namespace": "default",
    "kubernetes.io/pod.uid": uidOf(pod),
    "kubernetes.io/serviceAccount.name": "robot",
    "kubernetes.io/mounterArgs.FsGroup": "4321",
    "kubernetes.io/secret/key": Buffer.from("top secret").toString("base64"),
  });
  assert.deepEqual(node.volumes.kinds(), [{ plugin: name, isMounted: true }]);
  await node.volumes.unmount(uidOf(pod));
  assert.deepEqual(await driver.commands(), ["mount", "unmount"]);
  assert.equal(await ifThere(stat(place)), undefined);
});

test("a driver that has volumes attached: mounted once for two pods, by the cluster's leave", needsRoot, async () => {
  const attached = new Map<string, Attachment>();
  const reported: (readonly string[])[] = [];
  let inUse: VolumesInUse | undefined;
  const newInUse = (): VolumesInUse => {
    const made: VolumesInUse = new VolumesInUse({
      onInUse: () => reported.push(made.list()),
      attachedAt: async (volume) => attached.get(volume),
    });
    inUse = made;
    return made;
  };
  await using flexNode = await FlexNode.create({ capabilities: { attach: true } }, { inUse: newInUse });
  const { node, driver } = flexNode;
  const device = flexNode.devicePlace("pv-c");
  const [first, second] = [podWithVolumes([claimed]), podWithVolumes([claimed])];
  const refusal = await flexNode.refusal(first);
  assert.match(refusal, /unattached volumes=\[v\].*Volume not attached according to node status/);
  assert.deepEqual(reported, [["example.com/disk/pv-c"]]);
  attached.set("example.com/disk/pv-c", { devicePath: "/dev/example" });
  node.volumes.retryNow();
  await until("the first pod has its volume", () => node.ready.includes(uidOf(first)));
  await node.volumes.mount(second, never);
  const calls = (await driver.calls()).filter((line) => !line.startsWith("getvolumename"));
  const options =
    '{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"pv-c","kubernetes.io/readwrite":"rw","size":"1"}';
  assert.deepEqual(calls.slice(0, 2), [
    `waitforattach /dev/example ${options}`,
    `mountdevice ${device} /dev/example ${options}`,
  ]);
  assert.deepEqual((await driver.commands()).filter((command) => command === "mountdevice").length, 1);
  // The agent is killed and comes back: who uses the device is on disk.
  await node.restart();
  assert.deepEqual(inUse?.list(), ["example.com/disk/pv-c"]);
  await node.volumes.unmount(uidOf(first));
  assert.ok(await isMountPoint(device));
  await node.volumes.unmount(uidOf(second));
  assert.equal(await ifThere(stat(device)), undefined);
  assert.deepEqual((await driver.commands()).slice(-3), ["unmount", "unmount", "unmountdevice"]);
  assert.deepEqual(inUse?.list(), []);
});

test(
  "without a controller the agent attaches and detaches; what the driver leaves to us is done",
  needsRoot,
  async () => {
    const cases =
      'attach) echo \'{"status":"Success","device":""}\';;\nmount|unmount|unmountdevice) no;;\ndetach) ok;;';
    await using flexNode = await FlexNode.create({ capabilities: { attach: true }, cases });
    const { node, driver } = flexNode;
    const pod = podWithVolumes([claimed]);
    await node.volumes.mount(pod, never);
    assert.ok(await isMountPoint(flexNode.place(pod, "pv-c")));
    await node.volumes.unmount(uidOf(pod));
    const [attach = ""] = (await driver.calls()).filter((line) => line.startsWith("attach"));
    assert.ok(attach.endsWith(" node-1"), attach);
    assert.deepEqual(await node.mounts(), []);
    assert.equal((await driver.calls()).at(-1), "detach pv-c node-1");
    assert.equal(await ifThere(stat(flexNode.devicePlace("pv-c"))), undefined);
  },
);

test("a device that no pod uses after a kill is unmounted", needsRoot, async () => {
  await using flexNode = await FlexNode.create({ capabilities: { attach: true } });
  const { node, driver } = flexNode;
  const pod = podWithVolumes([claimed]);
  await node.volumes.mount(pod, never);
  await driver.install({ capabilities: { attach: true }, cases: "unmountdevice) kill -9 $$;;" });
  await until("the other driver is seen", async () => {
    await node.volumes.unmount(uidOf(pod)).catch(() => {});
    return !(await isMountPoint(flexNode.place(pod, "pv-c")));
  });
  await node.restart();
  assert.ok(await isMountPoint(flexNode.devicePlace("pv-c")));
  await driver.install({ capabilities: { attach: true } });
  await until("the device is unmounted", async () => {
    await node.volumes.cleanOrphanedDirectories(new Set(), never);
    return !(await isMountPoint(flexNode.devicePlace("pv-c")));
  });
  assert.equal(await ifThere(stat(flexNode.devicePlace("pv-c"))), undefined);
});

test("a driver that does not work keeps no other one's leftovers", async () => {
  await using flexNode = await FlexNode.create({ capabilities: { attach: true } });
  const { node } = flexNode;
  const broken = new TestFlexDriver(join(node.root, "flex"), "a.example/broken");
  await broken.install({ cases: "init) exit 1;;" });
  await node.volumes.restore();
  const left = join(node.root, "plugins/kubernetes.io/flexvolume", broken.name, "mounts/old");
  for (const place of [left, flexNode.devicePlace("old")]) await mkdir(place, { recursive: true });
  await node.volumes.cleanOrphanedDirectories(new Set(), never);
  assert.deepEqual([await isThere(left), await isThere(flexNode.devicePlace("old"))], [true, false]);
});

test("two volumes of one name that are not the same don't become one", needsRoot, async () => {
  await using flexNode = await FlexNode.create({ capabilities: { attach: true } });
  const [first, second] = [
    podWithVolumes([flex({ options: { a: "1" } })]),
    podWithVolumes([flex({ options: { a: "2" } })]),
  ];
  await flexNode.node.volumes.mount(first, never);
  assert.match(
    await flexNode.refusal(second),
    /another volume of driver example.com\/disk named v is mounted on this node/,
  );
  await flexNode.node.restart();
  const [late, reader] = [
    podWithVolumes([flex({ options: { a: "3" } })]),
    podWithVolumes([flex({ options: { a: "1" }, readOnly: true })]),
  ];
  assert.match(await flexNode.refusal(late), /another volume of driver/, "nor after a restart of the agent");
  await flexNode.node.volumes.mount(reader, never);
  for (const pod of [first, second, late, reader]) await flexNode.node.volumes.unmount(uidOf(pod));
  await flexNode.node.volumes.mount(podWithVolumes([flex({ options: { a: "4" } })]), never);
});

for (const { trouble, cases, problem } of [
  {
    trouble: "refuses",
    cases: 'mount) echo \'{"status":"Failure","message":"no such disk"}\'; exit 1;;',
    problem: /MountVolume.SetUp failed for volume "v" : mount command failed, status: Failure, reason: no such disk/,
  },
  {
    trouble: "says so where errors go",
    cases: 'mount) echo \'{"status":"Failure","message":"no such disk"}\' >&2; exit 1;;',
    problem: /mount command failed, status: Failure, reason: no such disk/,
  },
  {
    trouble: "answers rubbish",
    cases: "mount) echo 'mounted, I think';;",
    problem: /mount command answered with what is not JSON; the driver exited with 0: mounted, I think/,
  },
  {
    trouble: "never stops answering",
    cases: "mount) exec cat /dev/zero;;",
    problem: /driver example.com\/disk: mount: answered with more than 262144 bytes/,
  },
  {
    trouble: "crashes",
    cases: "mount) kill -SEGV $$;;",
    problem: /mount command answered with what is not JSON; the driver was ended by SIGSEGV/,
  },
  {
    trouble: "answers well and fails",
    cases: 'mount) echo \'{"status":"Success"}\'; exit 3;;',
    problem: /mount command answered Success, but the driver exited with 3/,
  },
  {
    trouble: "does not start",
    cases: 'init) echo \'{"status":"Failure","message":"not today"}\'; exit 1;;',
    problem:
      /MountVolume.FindPluginBySpec failed for volume "v" : error creating Flexvolume plugin from directory example.com~disk, skipping. Error: init command failed, status: Failure, reason: not today/,
  },
]) {
  test(`a driver that ${trouble}: the pod is told, and gets its volume from a better one`, needsRoot, async () => {
    await using flexNode = await FlexNode.create({ cases });
    const { node, driver } = flexNode;
    const pod = podWithVolumes([flex()]);
    assert.match(await flexNode.refusal(pod), problem);
    assert.equal(await ifThere(stat(flexNode.place(pod))), undefined);
    await driver.install();
    await until("the volume is there", () => node.ready.includes(uidOf(pod)));
    assert.ok(await isMountPoint(flexNode.place(pod)));
  });
}

test("secrets are in no message, even if the driver repeats them", needsRoot, async () => {
  const cases = 'mount) echo "cannot use $3"; exit 1;;';
  await using flexNode = await FlexNode.create({ cases });
  const { node } = flexNode;
  node.objects.secret("s", { key: "top secret" }, { type: name });
  const pod = podWithVolumes([flex({ secretRef: { name: "s" } })]);
  const refusal = await flexNode.refusal(pod);
  assert.match(refusal, /"kubernetes.io\/secret\/key":"\*\*\*"/);
  const said = refusal + JSON.stringify(node.events) + JSON.stringify(node.ledger.read(uidOf(pod)));
  assert.ok(!said.includes(Buffer.from("top secret").toString("base64")) && !said.includes("top secret"), said);
  node.objects.secret("other", { key: "x" });
  const other = await flexNode.refusal(podWithVolumes([flex({ secretRef: { name: "other" } })]));
  assert.match(other, /couldn't get secret default\/other err: cannot get secret of type example.com\/disk/);
});

test("a driver that hangs is named, given up, and in nobody's way", needsRoot, async () => {
  const cases = 'mount) sleep 1000 & echo $! >> "$0.sleepers"; wait;;';
  await using flexNode = await FlexNode.create({ cases }, { longestDriverCallMs: 6_000 });
  const { node, driver } = flexNode;
  const good = new TestFlexDriver(join(node.root, "flex"), "example.com/good");
  await good.install();
  const stuck = Array.from({ length: 8 }, (_, index) =>
    podWithVolumes([flex()], {}, { name: `stuck-${index}`, uid: `stuck-${index}` }),
  );
  const refusals = stuck.map((pod) => flexNode.refusal(pod));
  await until("the pod's ledger names the driver", () =>
    (node.ledger.read("stuck-0" as PodUid)?.blocker?.message ?? "").includes("v (driver example.com/disk: mount"),
  );
  const pod = podWithVolumes([{ name: "v", flexVolume: { driver: good.name } }]);
  node.volumes.want(pod);
  await until("the good driver's volume is there", async () => {
    node.volumes.retryNow();
    return await isMountPoint(node.volumePath(uidOf(pod), good.name, "v"));
  });
  const sleepers = async (): Promise<string[]> =>
    ((await ifThere(readFile(`${driver.program}.sleepers`, "utf8"))) ?? "").split("\n").filter((line) => line !== "");
  // Four at a time, whoever waits.
  assert.ok((await sleepers()).length <= 4, String(await sleepers()));
  const [refusal = ""] = await Promise.all(refusals);
  assert.match(refusal, /driver example.com\/disk did not answer mount within 6s/);
  for (const { metadata } of stuck) await node.volumes.unmount(metadata.uid as PodUid);
  await until("what it has started is gone, too", async () => {
    for (const pid of await sleepers()) if (await ifThere(stat(`/proc/${pid}`))) return false;
    return true;
  });
});

test("a driver that hangs while it unmounts is named, too", needsRoot, async () => {
  await using flexNode = await FlexNode.create({ cases: "unmount) sleep 1000;;" });
  const { node, driver } = flexNode;
  const pod = podWithVolumes([flex()]);
  await node.volumes.mount(pod, never);
  const ending = new AbortController();
  const end = node.volumes.unmount(uidOf(pod), ending.signal).catch(() => {});
  await until("the pod's ledger names the driver", () =>
    (node.ledger.read(uidOf(pod))?.blocker?.message ?? "").includes("unmounted: v (driver example.com/disk: unmount"),
  );
  ending.abort();
  await end;
  await driver.install();
  await node.volumes.unmount(uidOf(pod));
  assert.equal(node.ledger.read(uidOf(pod))?.blocker, undefined);
  assert.deepEqual(await node.mounts(), []);
});

test("a driver replaced while its volume is mounted: the new one unmounts it", needsRoot, async () => {
  await using flexNode = await FlexNode.create({});
  const { node, driver } = flexNode;
  const pod = podWithVolumes([flex()]);
  await node.volumes.mount(pod, never);
  const before = await stat(driver.program);
  await driver.install({ cases: 'unmount) echo new >> "$0.new"; umount "$2"; ok;;' });
  assert.notEqual((await stat(driver.program)).ino, before.ino);
  // A running pod keeps what it has.
  assert.ok(await isMountPoint(flexNode.place(pod)));
  await node.volumes.unmount(uidOf(pod));
  assert.equal(await readFile(`${driver.program}.new`, "utf8"), "new\n");
});

test("a driver that went while its volume is mounted: nothing is removed until it is back", needsRoot, async () => {
  await using flexNode = await FlexNode.create({});
  const { node, driver } = flexNode;
  const pod = podWithVolumes([flex()]);
  await node.volumes.mount(pod, never);
  await rm(join(driver.program, ".."), { recursive: true });
  await node.restart();
  await assert.rejects(node.volumes.unmount(uidOf(pod)), /is mounted, and there is no driver example.com\/disk in/);
  assert.ok(await isMountPoint(flexNode.place(pod)));
  await driver.install();
  await until("it is unmounted", async () => {
    await node.volumes.unmount(uidOf(pod)).catch(() => {});
    return !(await isMountPoint(flexNode.place(pod)));
  });
});

test("a mounted volume is found again after a restart, and not mounted twice", needsRoot, async () => {
  await using flexNode = await FlexNode.create({});
  const { node, driver } = flexNode;
  const pod = podWithVolumes([flex()]);
  await node.volumes.mount(pod, never);
  await node.restart();
  await node.volumes.mount(pod, never);
  assert.deepEqual(await driver.commands(), ["mount"]);
});

test("drivers are noticed where there was not even a directory for them; others' names are none", async () => {
  await using flexNode = await FlexNode.create(undefined);
  const { node, driver } = flexNode;
  const pod = podWithVolumes([flex({ readOnly: true })]);
  assert.match(
    await flexNode.refusal(pod),
    /failed to get Plugin from volumeSpec for volume "v" err=no volume plugin matched/,
  );
  for (const trap of ["..~disk", ".example.com~disk", "example.com~other"]) {
    await mkdir(join(node.root, "flex", trap), { recursive: true });
  }
  // Mounts nothing, so that it can be looked at without being root.
  await driver.install({ cases: "mount|unmount) ok;;" });
  await until("the volume is there", () => node.ready.includes(uidOf(pod)));
  const [call = ""] = await driver.calls();
  assert.match(call, /"kubernetes.io\/readwrite":"ro"/);
});

test("a claim that has grown: the driver grows the file system", needsRoot, async () => {
  const reports: unknown[] = [];
  const growth = {
    reportResize: async (_claim: object, report: object) => void reports.push(report),
    recordClaimEvent: () => {},
  };
  await using flexNode = await FlexNode.create({ cases: "expandfs) ok;;" }, { growth });
  const { node, driver, claims } = flexNode;
  const { spec } = claims.persistentVolumes.get("pv-c") ?? {};
  claims.persistentVolumes.set("pv-c", { metadata: { name: "pv-c" }, spec: { ...spec, capacity: { storage: "2Gi" } } });
  const claim = claims.claims.get("c");
  claims.claims.set("c", {
    ...claim,
    status: {
      phase: "Bound",
      capacity: { storage: "1Gi" },
      allocatedResourceStatuses: { storage: "NodeResizePending" },
    },
  });
  const pod = podWithVolumes([claimed]);
  await node.volumes.mount(pod, never);
  const call = (await driver.calls()).find((line) => line.startsWith("expandfs")) ?? "";
  assert.ok(call.endsWith(`  ${flexNode.place(pod, "pv-c")} 2147483648 1073741824`), call);
  assert.deepEqual(reports, [{ state: "in progress" }, { state: "done", capacity: "2Gi" }]);
});
