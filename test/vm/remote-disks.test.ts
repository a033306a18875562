// Disks over a network, with the kernel's own initiator and a target on loopback: sessions are shared, and end with the
// last volume, whenever the agent is killed. A Fibre Channel has no such stand-in but a disk with a name of its own.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Pod, Volume } from "../../src/ground/model/index.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";

const iqn = "iqn.2026-01.com.example:disks";
const places = "/var/lib/kubelet/plugins/kubernetes.io/iscsi";
let machine: VirtualMachine;
let agent: GuestAgent;

before(async () => {
  machine = await VirtualMachine.start({ name: "remote-disks" });
  await machine.run("modprobe iscsi_tcp && modprobe sd_mod");
  await machine.putFile("/etc/iscsi/initiatorname.iscsi", "InitiatorName=iqn.2026-01.com.example:node\n");
  // Each hangs for as long as its file is there.
  for (const { program, real, word } of [
    { program: "iscsiadm", real: "/usr/sbin/iscsiadm", word: "--logout" },
    { program: "mount", real: "/usr/bin/mount", word: places },
  ]) {
    const script = `#!/bin/sh
case "$*" in *${word}*) while [ -e /run/hang-${program} ]; do touch /run/hangs-${program}; sleep 0.2; done;; esac
exec ${real} "$@"
`;
    await machine.putFile(`/usr/local/sbin/${program}`, script, 0o755);
  }
  const tgtadm = "tgtadm --lld iscsi";
  await machine.run("systemctl start tgt iscsid", { withinMs: 300_000 });
  await machine.until("the target answers", `${tgtadm} --op show --mode target`);
  await machine.run(
    [
      "truncate -s 64M /var/lib/unit-1 /var/lib/unit-2",
      `${tgtadm} --op new --mode target --tid 1 -T ${iqn}`,
      `${tgtadm} --op new --mode logicalunit --tid 1 --lun 1 -b /var/lib/unit-1`,
      `${tgtadm} --op new --mode logicalunit --tid 1 --lun 2 -b /var/lib/unit-2`,
      `${tgtadm} --op new --mode account --user me --password hush-hush-hush`,
      `${tgtadm} --op bind --mode account --tid 1 --user me`,
      `${tgtadm} --op bind --mode target --tid 1 -I ALL`,
    ].join(" && "),
  );
  agent = await GuestAgent.start(machine);
  await machine.putFile(
    "/etc/kubernetes/manifests/chap.json",
    JSON.stringify({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "chap", namespace: "default" },
      stringData: { "node.session.auth.username": "me", "node.session.auth.password": "hush-hush-hush" },
    }),
  );
});
after(() => machine?.[Symbol.asyncDispose]());

test("two volumes of a target share its session; kills of the agent are not noticed", async () => {
  await agent.putStaticPods([iscsiPod("one", 1), iscsiPod("two", 2)]);
  await agent.untilReady(["one-vm", "two-vm"]);
  assert.equal(await sessions(), 1);
  assert.equal(
    await machine.run(`grep -c ' ${places}/iface-default/127.0.0.1:3260-${iqn}-lun-[12] ' /proc/mounts`),
    "2",
  );
  const before = await agent.tasks();
  await machine.run("systemctl kill --signal KILL nodelet");
  await agent.untilReady(["one-vm", "two-vm"]);
  assert.deepEqual(await agent.tasks(), before);
  assert.ok(!(await agent.log(2_000)).includes("hush"));
  await agent.removeStaticPod("one");
  await machine.until("its disk is gone", `! grep -q lun-1 /proc/mounts && ! ls /dev/disk/by-path | grep -q lun-1`);
  assert.equal(await sessions(), 1);
});

test("killed between unmount and logout: the next agent logs out", async () => {
  await machine.run("touch /run/hang-iscsiadm");
  await agent.removeStaticPod("two");
  await machine.until("it logs out", "test -e /run/hangs-iscsiadm");
  assert.equal(await machine.run(`grep -c ${places} /proc/mounts || true`), "0");
  await machine.run("systemctl kill --signal KILL nodelet; rm /run/hang-iscsiadm");
  await machine.until("the session is gone", "! iscsiadm -m session", 600_000);
  await machine.until("nothing is left", `test -z "$(find ${places} -name '*-lun-*')"`, 600_000);
});

test("killed between login and mount: a pod that is still wanted gets its data, one that is not leaves nothing", async () => {
  await machine.run("touch /run/hang-mount");
  await agent.putStaticPods([iscsiPod("two", 2), iscsiPod("three", 1)]);
  await machine.until("it mounts", "test -e /run/hangs-mount");
  await machine.until("it has logged in", "iscsiadm -m session");
  await machine.run(
    "rm /etc/kubernetes/manifests/three.json; systemctl kill --signal KILL nodelet; rm /run/hang-mount",
  );
  await agent.untilReady(["two-vm"]);
  // The pod of the first test has written it, before two kills.
  const found = await machine.run(`cat ${places}/iface-default/*-lun-2/lines`);
  assert.deepEqual(found.split("\n"), ["two", "two"]);
  await machine.until("the other's disk is gone", `! ls ${places}/iface-default | grep -q lun-1`, 600_000);
  assert.equal(await sessions(), 1);
  await agent.removeStaticPod("two");
  await machine.until("the session is gone", "! iscsiadm -m session", 600_000);
});

test("a disk by its own name is found by looking again, mounted, and taken from the node", async () => {
  await machine.run("modprobe scsi_debug dev_size_mb=64");
  await machine.until("udev has named it", "ls /dev/disk/by-id | grep -q '^scsi-[0-9]'");
  const name = await machine.run("ls /dev/disk/by-id | grep '^scsi-[0-9]' | head -n 1");
  const disk = await machine.run(`basename "$(readlink -f /dev/disk/by-id/${name})"`);
  // As if the node had never seen it.
  await machine.run(`echo 1 > /sys/block/${disk}/device/delete`);
  const wwids = [name.slice("scsi-".length)];
  await agent.putStaticPod(withVolume("fibre", { fc: { wwids, fsType: "ext4" } }));
  await agent.untilReady(["fibre-vm"]);
  assert.match(
    await machine.run("grep kubernetes.io/fc/ /proc/mounts"),
    new RegExp(`kubernetes.io/fc/${wwids[0]} ext4`),
  );
  await agent.removeStaticPod("fibre");
  await machine.until(
    "it is gone",
    `! grep -q kubernetes.io/fc/ /proc/mounts && ! test -e /dev/disk/by-id/${name}`,
    600_000,
  );
});

function iscsiPod(name: string, lun: number): Pod {
  const secretRef = { name: "chap" };
  return withVolume(name, {
    iscsi: { targetPortal: "127.0.0.1", iqn, lun, chapAuthSession: true, secretRef, fsType: "ext4" },
  });
}

/** Writes its name to the volume when it starts; ready when that is done. */
function withVolume(name: string, source: Omit<Volume, "name">): Pod {
  const pod = busyboxPod(name, `echo ${name} >> /disk/lines; touch /tmp/done; ${idleScript}`);
  const [container] = pod.spec?.containers ?? [];
  const readinessProbe = { exec: { command: ["test", "-e", "/tmp/done"] }, periodSeconds: 1 };
  const volumeMounts = [{ name: "disk", mountPath: "/disk" }];
  const containers = [{ ...container, name: "main", readinessProbe, volumeMounts }];
  return { ...pod, spec: { ...pod.spec, containers, volumes: [{ name: "disk", ...source }] } };
}

async function sessions(): Promise<number> {
  return Number(await machine.run("iscsiadm -m session | wc -l"));
}
