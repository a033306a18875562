import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type CgroupNaming,
  cgroupNamed,
  cgroupParent,
  kubepodsCgroup,
  podUidInPath,
  podUidOfCgroup,
  qosCgroup,
} from "./cgroup-names.ts";

const uid = "0a1b-22c3";
const cgroupfs: CgroupNaming = { driver: "cgroupfs", root: "", perQos: true };
const systemd: CgroupNaming = { driver: "systemd", root: "/", perQos: true };

for (const [naming, qos, path] of [
  [cgroupfs, "Guaranteed", "/kubepods/pod0a1b-22c3"],
  [cgroupfs, "Burstable", "/kubepods/burstable/pod0a1b-22c3"],
  [cgroupfs, "BestEffort", "/kubepods/besteffort/pod0a1b-22c3"],
  [{ ...cgroupfs, root: "/" }, "Burstable", "/kubepods/burstable/pod0a1b-22c3"],
  [{ ...cgroupfs, root: "/a/b" }, "Burstable", "/a/b/kubepods/burstable/pod0a1b-22c3"],
  [{ ...cgroupfs, perQos: false }, "Burstable", ""],
  [systemd, "Guaranteed", "/kubepods.slice/kubepods-pod0a1b_22c3.slice"],
  [systemd, "Burstable", "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b_22c3.slice"],
  [systemd, "BestEffort", "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0a1b_22c3.slice"],
  [{ ...systemd, root: "/a/b" }, "Guaranteed", "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod0a1b_22c3.slice"],
  [{ ...systemd, perQos: false }, "Guaranteed", ""],
] as const) {
  test(`${naming.driver}, root "${naming.root}", per QoS ${naming.perQos}, ${qos}: "${path}"`, () =>
    assert.equal(cgroupParent(naming, qos, uid), path));
}

test("the tiers", () => {
  assert.equal(kubepodsCgroup(cgroupfs), "/kubepods");
  assert.equal(qosCgroup(cgroupfs, "Guaranteed"), "/kubepods");
  assert.equal(qosCgroup(cgroupfs, "Burstable"), "/kubepods/burstable");
  assert.equal(qosCgroup(systemd, "BestEffort"), "/kubepods.slice/kubepods-besteffort.slice");
});

test("the uid is found in the path of a container's cgroup", () => {
  assert.equal(podUidInPath(cgroupfs, "/kubepods/burstable/pod0a1b-22c3/abc"), uid);
  assert.equal(podUidInPath(systemd, "/kubepods.slice/kubepods-pod0a1b_22c3.slice/cri-abc.scope"), uid);
  assert.equal(podUidInPath(systemd, "/system.slice/ssh.service"), undefined);
});

test("the uid is read back from a pod cgroup's name", () => {
  assert.equal(podUidOfCgroup(cgroupfs, "pod0a1b-22c3"), uid);
  assert.equal(podUidOfCgroup(systemd, "kubepods-burstable-pod0a1b_22c3.slice"), uid);
  assert.equal(podUidOfCgroup(systemd, "kubepods-pod0123abcd.slice"), "0123abcd");
});

for (const [naming, element] of [
  [cgroupfs, "burstable"],
  [cgroupfs, "pod"],
  [cgroupfs, "tasks"],
  [systemd, "kubepods-burstable.slice"],
  [systemd, "kubepods.slice"],
  [systemd, "cri-containerd-abc.scope"],
] as const) {
  test(`${element} is no pod's (${naming.driver})`, () => assert.equal(podUidOfCgroup(naming, element), undefined));
}

for (const [driver, name, path] of [
  ["cgroupfs", "/system", "/system"],
  ["cgroupfs", "a/b", "/a/b"],
  ["systemd", "/system.slice", "/system.slice"],
  ["systemd", "system", "/system.slice"],
  ["systemd", "kube-agents.slice", "/kube.slice/kube-agents.slice"],
  ["systemd", "/kube.slice/kube-agents.slice", "/kube.slice/kube-agents.slice"],
] as const) {
  test(`configured cgroup ${name} (${driver}) is ${path}`, () => assert.equal(cgroupNamed(driver, name), path));
}
