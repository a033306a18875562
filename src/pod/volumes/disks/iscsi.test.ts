import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { bareDisk } from "../../../../test/support/bare-disk.ts";
import { MemoryClaims } from "../../../../test/support/memory-claims.ts";
import { StorageNetwork } from "../../../../test/support/storage-network.ts";
import { until } from "../../../../test/support/until.ts";
import { podWithVolumes, VolumeNode, type VolumeNodeOptions } from "../../../../test/support/volume-node.ts";
import { isMountPoint, readMounts, ToolError } from "../../../connections/host/index.ts";
import { ifThere, untilAborted } from "../../../ground/base/index.ts";
import {
  type IdentifiedPod,
  type ISCSIPersistentVolumeSource,
  uidOf,
  type Volume,
} from "../../../ground/model/index.ts";
import { MountLabels } from "../kinds/selinux.ts";
import { VolumeError } from "../manager/volume-error.ts";
import { diskNamed } from "./iscsi-disk.ts";
import { settingsIn, transportIn } from "./iscsiadm.ts";

const needsRoot = { skip: process.getuid?.() === 0 ? false : "mounting needs root" };
const never = new AbortController().signal;
const iqn = "iqn.2026-01.com.example:disks";
const portal = "10.0.0.1:3260";
const claimed = (claimName: string): Volume => ({ name: "v", persistentVolumeClaim: { claimName } });

/** A node with a storage network that is stood in for, and claims `c0`, `c1`, … on the units of a target there. */
class IscsiNode implements AsyncDisposable {
  readonly node: VolumeNode;
  readonly network: StorageNetwork;
  readonly claims: MemoryClaims;

  private constructor(node: VolumeNode, network: StorageNetwork, claims: MemoryClaims) {
    this.node = node;
    this.network = network;
    this.claims = claims;
  }

  static async create(
    t: TestContext,
    units: number,
    source: Partial<ISCSIPersistentVolumeSource> = {},
    options: VolumeNodeOptions = {},
  ): Promise<IscsiNode | undefined> {
    const network = new StorageNetwork(await mkdtemp(join(tmpdir(), "nodelet-storage-")));
    t.after(() => rm(network.root, { recursive: true }));
    const claims = new MemoryClaims();
    for (let lun = 0; lun < units; lun++) {
      const device = bareDisk(t, network.root);
      if (device === undefined) return undefined;
      network.disks.set(lun, device);
      claims.bind(`c${lun}`, { iscsi: { targetPortal: "10.0.0.1", iqn, lun, ...source } });
    }
    const node = await VolumeNode.create({ claims, run: network.run, deviceRoot: network.root, ...options });
    return new IscsiNode(node, network, claims);
  }

  place(lun: number, form = ""): string {
    return join(this.node.root, "plugins/kubernetes.io/iscsi", form, "iface-default", `${portal}-${iqn}-lun-${lun}`);
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

test(
  "a unit of a target: logged in, formatted and mounted once for two pods, and logged out after both",
  needsRoot,
  async (t) => {
    await using iscsi = await IscsiNode.create(t, 1);
    if (iscsi === undefined) return;
    const { node, network } = iscsi;
    const pods = [
      podWithVolumes([claimed("c0")], { securityContext: { fsGroup: 77 } }),
      podWithVolumes([claimed("c0")]),
    ];
    for (const pod of pods) await node.volumes.mount(pod, never);
    const [first, second] = pods.map((pod) => node.volumePath(uidOf(pod), "kubernetes.io/iscsi", "pv-c0"));
    assert.ok(await isMountPoint(iscsi.place(0)));
    await writeFile(join(first ?? "", "shared"), "1");
    assert.equal(await readFile(join(second ?? "", "shared"), "utf8"), "1");
    assert.equal((await stat(first ?? "")).gid, 77);
    const [known] = await node.volumes.measure(uidOf(pods[0] as IdentifiedPod), never);
    assert.ok((known?.usage.capacityBytes ?? 0n) > 0n);
    const discovery = `iscsiadm -m discoverydb -t sendtargets -p ${portal} -I default`;
    const record = `iscsiadm -m node -p ${portal} -T ${iqn}`;
    const begun = [
      "iscsiadm -m iface -I default -o show",
      `${discovery} -o new`,
      `${discovery} --discover`,
      `${record} -I default -o update -n node.session.scan -v manual`,
      `${record} -I default --login`,
      `${record} -o update -n node.startup -v manual`,
      "/sys/class/scsi_host/host1/scan < 0 0 0",
    ];
    assert.deepEqual(network.calls, begun);
    const [one, other] = pods as [IdentifiedPod, IdentifiedPod];
    await node.volumes.unmount(uidOf(one));
    assert.deepEqual(network.calls, begun);
    // The next agent knows who uses it.
    await node.restart();
    await node.volumes.cleanOrphanedDirectories(new Set([uidOf(other)]), never);
    assert.ok(await isMountPoint(iscsi.place(0)));
    await node.volumes.unmount(uidOf(other));
    assert.deepEqual(network.calls.slice(begun.length), [
      "/sys/block/sda/device/delete < 1",
      `${record} --logout -I default`,
      `${record} -o delete -I default`,
    ]);
    assert.deepEqual(await node.mounts(), []);
    assert.deepEqual(await readdir(join(node.root, "plugins/kubernetes.io/iscsi")), []);
  },
);

test("what is needed to log out is on disk before the login, as the Go kubelet writes it", needsRoot, async (t) => {
  await using iscsi = await IscsiNode.create(t, 1, {
    portals: ["10.0.0.2", portal],
    initiatorName: "iqn.2026-01.com.example:me",
  });
  if (iscsi === undefined) return;
  const { node, network } = iscsi;
  // Else it would be waited for.
  network.map = "dm-1";
  const own = `${portal}:pv-c0`;
  const place = join(node.root, "plugins/kubernetes.io/iscsi", `iface-${own}`, `${portal}-${iqn}-lun-0`);
  let written = "";
  network.onCall = async (call) => {
    if (call.endsWith("--login")) written ||= await readFile(join(place, "iscsi.json"), "utf8");
  };
  const pod = podWithVolumes([claimed("c0")]);
  await node.volumes.mount(pod, never);
  assert.equal(
    written,
    `{"VolName":"pv-c0","Portals":["${portal}","10.0.0.2:3260"],"Iqn":"${iqn}","Lun":"0","InitIface":"default",` +
      `"Iface":"${own}","InitiatorName":"iqn.2026-01.com.example:me","MetricsProvider":null}\n`,
  );
  assert.deepEqual(
    network.calls.filter((call) => call.includes("-m iface")),
    [
      "iscsiadm -m iface -I default -o show",
      "iscsiadm -m iface -I default -o show",
      `iscsiadm -m iface -I ${own} -o new`,
      `iscsiadm -m iface -I ${own} -o update -n iface.initiatorname -v iqn.2026-01.com.example:me`,
      `iscsiadm -m iface -I ${own} -o update -n iface.transport_name -v tcp`,
    ],
  );
  assert.equal((await network.sessions()).length, 2);
  await node.volumes.unmount(uidOf(pod));
  assert.deepEqual(await network.sessions(), []);
  assert.equal(network.calls.at(-1), `iscsiadm -m iface -I ${own} -o delete`);
});

test(
  "a session ends with the last volume of its target, and never one that somebody else began",
  needsRoot,
  async (t) => {
    await using iscsi = await IscsiNode.create(t, 2);
    if (iscsi === undefined) return;
    const { node, network } = iscsi;
    const pods = [podWithVolumes([claimed("c0")]), podWithVolumes([claimed("c1")])];
    // At once: neither takes the other\'s session for somebody else\'s.
    await Promise.all(pods.map((pod) => node.volumes.mount(pod, never)));
    assert.deepEqual(await network.sessions(), [`${portal} ${iqn}`]);
    for (const pod of pods) {
      assert.deepEqual(await network.sessions(), [`${portal} ${iqn}`]);
      await node.volumes.unmount(uidOf(pod));
    }
    assert.deepEqual(await network.sessions(), []);
    await network.logIn(portal, iqn);
    for (const pod of pods) await node.volumes.mount(pod, never);
    await node.restart();
    for (const pod of pods) await node.volumes.unmount(uidOf(pod));
    assert.deepEqual(await network.sessions(), [`${portal} ${iqn}`]);
    assert.deepEqual(await network.shown(), []);
  },
);

for (const { moment, hangsAt } of [
  { moment: "between login and mount", hangsAt: "mount " },
  { moment: "while logging in", hangsAt: `--login` },
  { moment: "between unmount and logout", hangsAt: "--logout" },
]) {
  test(`an agent that ends ${moment}: the next one logs out`, needsRoot, async (t) => {
    const hang = { at: "", reached: false };
    const network: { run?: StorageNetwork["run"] } = {};
    const run: StorageNetwork["run"] = async (program, args, signal) => {
      if (hang.at !== "" && `${program} ${args.join(" ")} `.includes(hang.at)) {
        hang.reached = true;
        await untilAborted(signal);
        signal.throwIfAborted();
      }
      return (await network.run?.(program, args, signal)) ?? "";
    };
    await using iscsi = await IscsiNode.create(t, 1, {}, { run });
    if (iscsi === undefined) return;
    network.run = iscsi.network.run;
    const { node } = iscsi;
    const pod = podWithVolumes([claimed("c0")]);
    if (hangsAt === "--logout") await node.volumes.mount(pod, never);
    hang.at = hangsAt;
    if (hangsAt === "--logout")
      node.scope.spawn("end", (signal) => node.volumes.unmount(uidOf(pod), signal).catch(() => {}));
    else node.volumes.want(pod);
    await until("it has come so far", () => hang.reached);
    await node.restart();
    hang.at = "";
    assert.equal((await iscsi.network.sessions()).length, hangsAt === "--login" ? 0 : 1);
    assert.ok(await ifThere(stat(join(iscsi.place(0), "iscsi.json"))));
    await node.volumes.cleanOrphanedDirectories(new Set(), never);
    assert.deepEqual(await iscsi.network.sessions(), []);
    assert.deepEqual(await node.mounts(), []);
    assert.equal(await ifThere(stat(iscsi.place(0))), undefined);
  });
}

test(
  "several portals: one that is away does no harm, and a multipath map is used and flushed",
  needsRoot,
  async (t) => {
    await using iscsi = await IscsiNode.create(t, 1, { portals: ["10.0.0.2:3260", "10.0.0.3:3260"] });
    if (iscsi === undefined) return;
    const { node, network } = iscsi;
    network.reachable = new Set([portal, "10.0.0.2:3260"]);
    network.map = "dm-7";
    const pod = podWithVolumes([claimed("c0")]);
    await node.volumes.mount(pod, never);
    assert.equal((await network.sessions()).length, 2);
    const mounted = (await readMounts()).find(({ mountPoint }) => mountPoint === iscsi.place(0))?.source;
    assert.equal(mounted, network.disks.get(0));
    const before = network.calls.length;
    await node.volumes.unmount(uidOf(pod));
    const after = network.calls.slice(before).filter((call) => !call.includes(" -o delete"));
    assert.deepEqual(after, [
      `multipath -f ${join(network.root, "dev/dm-7")}`,
      "/sys/block/sda/device/delete < 1",
      "/sys/block/sdb/device/delete < 1",
      ...[portal, "10.0.0.2:3260", "10.0.0.3:3260"].map(
        (at) => `iscsiadm -m node -p ${at} -T ${iqn} --logout -I default`,
      ),
    ]);
  },
);

test(
  "no portal answers: the pod is told, nothing is left but what the next try needs, and that goes with the pod",
  needsRoot,
  async (t) => {
    await using iscsi = await IscsiNode.create(t, 1);
    if (iscsi === undefined) return;
    const { node, network } = iscsi;
    network.reachable = new Set();
    const pod = podWithVolumes([claimed("c0")]);
    assert.match(
      await iscsi.refusal(pod),
      /MountVolume.WaitForAttach failed for volume "pv-c0" : failed to get any path for iscsi disk, last err seen:\niscsi: failed to sendtargets to portal 10.0.0.1:3260/,
    );
    await node.volumes.unmount(uidOf(pod));
    await node.volumes.cleanOrphanedDirectories(new Set(), never);
    assert.equal(await ifThere(stat(iscsi.place(0))), undefined);
  },
);

test("secrets of a target are told to it, and to nobody else", needsRoot, async (t) => {
  await using iscsi = await IscsiNode.create(t, 1, {
    chapAuthDiscovery: true,
    chapAuthSession: true,
    secretRef: { name: "chap", namespace: "default" },
  });
  if (iscsi === undefined) return;
  const { node, network } = iscsi;
  const pod = podWithVolumes([claimed("c0")]);
  assert.match(await iscsi.refusal(pod), /couldn't get secret default\/chap error: secrets "chap" not found/);
  node.objects.secret("chap", {
    "discovery.sendtargets.auth.username": "me",
    "node.session.auth.username": "me",
    "node.session.auth.password": "hush-hush",
    other: "x",
  });
  network.onCall = (call) => {
    if (call.endsWith("-v hush-hush"))
      throw new ToolError("iscsiadm", call.split(" "), 6, "hush-hush is bad", undefined);
  };
  const other = podWithVolumes([claimed("c0")]);
  const refusal = await iscsi.refusal(other);
  assert.match(refusal, /iscsi: failed to update node.session.auth.password: \*\*\* is bad/);
  assert.ok(!(refusal + JSON.stringify(node.events)).includes("hush"), refusal);
  network.onCall = () => {};
  node.volumes.retryNow();
  await until("the volume is there", () => node.ready.includes(uidOf(other)));
  assert.deepEqual(
    network.calls
      .filter((call) => call.includes("auth"))
      .map((call) => call.slice(call.indexOf("-n ")).trim())
      .slice(-5),
    [
      "-n discovery.sendtargets.auth.authmethod -v CHAP",
      "-n discovery.sendtargets.auth.username -v me",
      "-n node.session.auth.authmethod -v CHAP",
      "-n node.session.auth.username -v me",
      "-n node.session.auth.password -v hush-hush",
    ],
  );
});

test(
  "block mode: the device under a name of the pod; a link that was lost leaves nothing for good",
  needsRoot,
  async (t) => {
    await using iscsi = await IscsiNode.create(t, 1);
    if (iscsi === undefined) return;
    const { node, network, claims } = iscsi;
    claims.bind("c0", { iscsi: { targetPortal: portal, iqn, lun: 0 }, volumeMode: "Block" });
    const spec = { containers: [{ name: "main", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }] };
    const pods = [podWithVolumes([claimed("c0")], spec), podWithVolumes([claimed("c0")], spec)];
    const [first, second] = pods as [IdentifiedPod, IdentifiedPod];
    for (const pod of pods) await node.volumes.mount(pod, never);
    const link = join(node.podsDir, uidOf(first), "volumeDevices/kubernetes.io~iscsi/pv-c0");
    assert.equal(await readlink(link), join(iscsi.place(0, "volumeDevices"), uidOf(first)));
    assert.equal((await stat(link)).rdev, (await stat(network.disks.get(0) ?? "")).rdev);
    await node.restart();
    await node.volumes.unmount(uidOf(first));
    assert.equal((await network.sessions()).length, 1);
    // As after a kill in the middle of letting go: the device is mapped, but nothing leads to it any more.
    await rm(join(node.podsDir, uidOf(second)), { recursive: true });
    await node.restart();
    await node.volumes.cleanOrphanedDirectories(new Set(), never);
    assert.deepEqual(await network.sessions(), []);
    assert.deepEqual(await node.mounts(), []);
    assert.equal(await ifThere(stat(iscsi.place(0, "volumeDevices"))), undefined);
  },
);

test(
  "where SELinux is on, a volume of one pod is mounted with its label, and nothing is relabelled",
  needsRoot,
  async (t) => {
    const labels = new MountLabels("system_u:object_r:container_file_t:s0", {
      ofOnePod: true,
      ofMany: false,
      byChoice: true,
    });
    const mounted: string[] = [];
    const network: { run?: StorageNetwork["run"] } = {};
    const run: StorageNetwork["run"] = async (program, args, signal) => {
      // This kernel has no policy: what it would be asked is noted, and left out.
      const given = args.map((arg) => arg.replace(/context="[^"]*",/, ""));
      if (program === "mount") mounted.push(args[args.indexOf("-o") + 1] ?? "");
      return (await network.run?.(program, given, signal)) ?? "";
    };
    await using iscsi = await IscsiNode.create(t, 2, {}, { run, labels });
    if (iscsi === undefined) return;
    network.run = iscsi.network.run;
    const { node, claims } = iscsi;
    claims.bind("c0", { iscsi: { targetPortal: portal, iqn, lun: 0 }, accessModes: ["ReadWriteOncePod"] });
    const spec = { securityContext: { seLinuxOptions: { level: "s0:c1,c2" } } };
    const [one, many] = [podWithVolumes([claimed("c0")], spec), podWithVolumes([claimed("c1")], spec)];
    for (const pod of [one, many]) await node.volumes.mount(pod, never);
    assert.deepEqual(mounted, ['context="system_u:object_r:container_file_t:s0:c1,c2",defaults', "defaults"]);
    const relabels = [one, many].map((pod) => node.volumes.of(uidOf(pod)).get("v"));
    assert.deepEqual(
      relabels.map((volume) => volume?.type === "filesystem" && volume.relabel),
      [false, true],
    );
  },
);

test(
  "a disk that somebody else has in use stays: another volume of the unit, or the node itself",
  needsRoot,
  async (t) => {
    await using iscsi = await IscsiNode.create(t, 1);
    if (iscsi === undefined) return;
    const { node, network, claims } = iscsi;
    claims.bind("raw", { iscsi: { targetPortal: portal, iqn, lun: 0 }, volumeMode: "Block" });
    const spec = { containers: [{ name: "main", image: "x", volumeDevices: [{ name: "v", devicePath: "/dev/x" }] }] };
    const [files, raw] = [podWithVolumes([claimed("c0")]), podWithVolumes([claimed("raw")], spec)];
    for (const pod of [files, raw]) await node.volumes.mount(pod, never);
    const isLetGo = (call: string): boolean => /delete$|delete < 1|--logout/.test(call);
    await node.volumes.unmount(uidOf(raw));
    assert.deepEqual(network.calls.filter(isLetGo), []);
    assert.ok(await isMountPoint(iscsi.place(0)));
    // A partition of it holds what this machine runs from.
    const own = (await readMounts()).find(({ mountPoint }) => mountPoint === "/")?.device ?? "";
    await mkdir(join(network.root, "sys/block/sda/sda1"));
    await writeFile(join(network.root, "sys/block/sda/sda1/dev"), `${own}\n`);
    await node.volumes.unmount(uidOf(files));
    assert.deepEqual(network.calls.filter(isLetGo), []);
    assert.equal(await ifThere(stat(iscsi.place(0))), undefined);
  },
);

for (const spelling of ["storage.example:3260", "10.0.0.1:03260"]) {
  test(`a session that was there first is not ended by another name of its portal: ${spelling}`, async (t) => {
    await using iscsi = await IscsiNode.create(t, 0);
    if (iscsi === undefined) return;
    const { node, network } = iscsi;
    await network.logIn(portal, iqn);
    network.reachable = new Set([portal]);
    const pod = podWithVolumes([{ name: "v", iscsi: { targetPortal: spelling, iqn, lun: 0 } }]);
    assert.match(await iscsi.refusal(pod), /failed to get any path/);
    const before = network.calls.length;
    await node.volumes.unmount(uidOf(pod));
    await node.volumes.cleanOrphanedDirectories(new Set(), never);
    assert.deepEqual(network.calls.slice(before), []);
  });
}

test("a session stays while another of its disks is in use, whoever has begun it", needsRoot, async (t) => {
  await using iscsi = await IscsiNode.create(t, 1);
  if (iscsi === undefined) return;
  const { node, network } = iscsi;
  const pod = podWithVolumes([claimed("c0")]);
  await node.volumes.mount(pod, never);
  // Somebody has looked for the next unit by hand, and mounted it.
  const own = (await readMounts()).find(({ mountPoint }) => mountPoint === "/")?.device ?? "";
  const unit = join(network.root, "sys/class/iscsi_host/host1/device/session1/target1:0:0/1:0:0:9/block/sdz");
  await mkdir(unit, { recursive: true });
  await mkdir(join(network.root, "sys/block/sdz"));
  await writeFile(join(network.root, "sys/block/sdz/dev"), `${own}\n`);
  await node.volumes.unmount(uidOf(pod));
  assert.deepEqual(await network.sessions(), [`${portal} ${iqn}`]);
  assert.equal(await ifThere(stat(iscsi.place(0))), undefined);
});

test("portals that are away keep no other volume of the target waiting", needsRoot, async (t) => {
  await using iscsi = await IscsiNode.create(t, 1);
  if (iscsi === undefined) return;
  const { node, network, claims } = iscsi;
  const away = Array.from({ length: 20 }, (_, index) => `10.9.9.${index}:3260`);
  network.reachable = new Set([portal]);
  claims.bind("away", { iscsi: { targetPortal: away[0] ?? "", portals: away, iqn, lun: 7 } });
  const refused = iscsi.refusal(podWithVolumes([claimed("away")]));
  await until("the first one is asked", () => network.calls.some((call) => call.endsWith("--discover")));
  await node.volumes.mount(podWithVolumes([claimed("c0")]), never);
  assert.match(await refused, /failed to get any path/);
  const at = (part: string): number => network.calls.findIndex((call) => call.includes(part));
  assert.ok(at("--login") < at(`-p ${away.at(-1)} -I default --discover`), network.calls.join("\n"));
});

test("names that would lead elsewhere are refused before anything is done", async (t) => {
  for (const [source, problem] of [
    [{ iscsiInterface: "../../../etc" }, /"\.\.\/\.\.\/\.\.\/etc" is not the name of a interface/],
    [{ targetPortal: "10.0.0.1/../x" }, /"10\.0\.0\.1\/\.\.\/x:3260" is not the name of a portal/],
    [{ iqn: "iqn.2026-01.x:a b" }, /is not the name of a target/],
    [{ initiatorName: "-x" }, /"-x" is not the name of a initiator/],
    // Its place would count as one of the target that the node lives on, whose session is then taken for a pod's.
    [{ targetPortal: "a-iqn.2026-01.com.example:root:3260" }, /is not the name of a disk/],
    [{ iqn: "disks" }, /is not the name of a disk/],
  ] as const) {
    await using iscsi = await IscsiNode.create(t, 0);
    if (iscsi === undefined) return;
    const given = { targetPortal: portal, iqn, lun: 0, ...source };
    const pod = podWithVolumes([{ name: "v", iscsi: given }]);
    assert.match(await iscsi.refusal(pod), problem);
    assert.deepEqual(iscsi.network.calls, []);
    assert.equal(await ifThere(readdir(join(iscsi.node.root, "plugins"))), undefined);
  }
});

test("names of places are read back", () => {
  for (const [path, disk] of [
    [`/x/iface-default/${portal}-${iqn}-lun-12`, { interface: "default", portals: [portal], iqn, lun: 12 }],
    [
      "/x/iface-a:3260:pv-1/[fd00::1]:3260-eui.0-lun-0",
      { interface: "a:3260:pv-1", portals: ["[fd00::1]:3260"], iqn: "eui.0", lun: 0 },
    ],
    [
      "iface-d/my-host:3260-iqn.x:a-lun-b-lun-3",
      { interface: "d", portals: ["my-host:3260"], iqn: "iqn.x:a-lun-b", lun: 3 },
    ],
    ["/x/iface-default/lost+found", undefined],
  ] as const) {
    assert.deepEqual(diskNamed(path), disk);
  }
  assert.equal(transportIn("x\niface.transport_name = bnx2i\ny"), "bnx2i");
  assert.equal(transportIn("iface.transport_name = <empty>\n"), "tcp");
  assert.equal(transportIn(""), "");
  const shown = "iface.iscsi_ifacename = a\niface.transport_name = tcp\niface.hwaddress = <empty>\niface.mtu = 1500\n#";
  assert.deepEqual(
    [...settingsIn(shown)],
    [
      ["iface.transport_name", "tcp"],
      ["iface.mtu", "1500"],
    ],
  );
});
