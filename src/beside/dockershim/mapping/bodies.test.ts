import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ContainerConfig,
  LinuxContainerResources,
  LinuxContainerSecurityContext,
  Mount,
  MountPropagation,
  NamespaceMode,
  PodSandboxConfig,
  SecurityProfile_ProfileType as ProfileType,
  Protocol,
} from "../../../connections/cri/index.ts";
import { containerBody } from "./container-body.ts";
import { mountFields } from "./mounts.ts";
import { cgroupParentFor, limitFields, updateFields } from "./resources.ts";
import { sandboxBody } from "./sandbox-body.ts";
import { seccompFileOf, securityOptions, userOf } from "./security.ts";

const sandboxTraits = {
  image: "pause",
  createdAt: 5n,
  cgroupDriver: "cgroupfs",
  network: "cni",
  runtimeHandler: "",
  lowestOomScore: -1000,
} as const;
const containerTraits = {
  sandboxId: "sid",
  runtime: "",
  createdAt: 5n,
  logPath: "/logs/0.log",
  cgroupDriver: "cgroupfs",
  lowestOomScore: -1000,
  seccomp: undefined,
  api: 41,
  selinux: false,
};

type Body = { [field: string]: unknown; HostConfig: Record<string, unknown>; Labels: Record<string, string> };

test("a sandbox: namespaces that can be joined, no network of docker's, the pod's cgroup", () => {
  const config = PodSandboxConfig.fromPartial({
    metadata: { name: "web" },
    hostname: "web",
    labels: { app: "x", "io.kubernetes.docker.type": "spoof" },
    annotations: { note: "n" },
    linux: { cgroupParent: "/kubepods/pod1", sysctls: { "net.a": "1" } },
  });
  const body = sandboxBody(config, sandboxTraits) as Body;
  assert.equal(body["Hostname"], "web");
  const { NetworkMode, IpcMode, PidMode, CgroupParent, OomScoreAdj, SecurityOpt, Sysctls } = body.HostConfig;
  assert.deepEqual([NetworkMode, IpcMode, PidMode], ["none", "shareable", undefined]);
  assert.deepEqual([CgroupParent, OomScoreAdj, SecurityOpt], ["/kubepods/pod1", -998, ["no-new-privileges"]]);
  assert.deepEqual(Sysctls, { "net.a": "1" });
  assert.equal(body.Labels["io.kubernetes.docker.type"], "podsandbox", "no pod chooses what is ours");
  assert.equal(body.Labels["annotation.note"], "n");
});

test("annotations that are too long for docker's lists are left out, the longest first", () => {
  const annotations = {
    short: "n",
    long: "x".repeat(70_000),
    longer: "<".repeat(30_000),
    longest: "y".repeat(200_000),
  };
  const config = PodSandboxConfig.fromPartial({ metadata: { name: "web" }, annotations });
  const { Labels } = sandboxBody(config, sandboxTraits) as Body;
  const kept = Object.keys(Labels).filter((key) => key.startsWith("annotation."));
  assert.deepEqual(kept, ["annotation.short", "annotation.long"]);
});

test("a sandbox on the node, under systemd, where scores can't be lowered", () => {
  const namespaceOptions = { network: NamespaceMode.NODE, ipc: NamespaceMode.NODE, pid: NamespaceMode.NODE };
  const config = PodSandboxConfig.fromPartial({
    metadata: {},
    linux: { cgroupParent: "/kubepods.slice/kubepods-pod1.slice", securityContext: { namespaceOptions } },
  });
  const body = sandboxBody(config, { ...sandboxTraits, cgroupDriver: "systemd", lowestOomScore: 0 }) as Body;
  const { NetworkMode, IpcMode, PidMode, CgroupParent, OomScoreAdj } = body.HostConfig;
  assert.deepEqual(
    [NetworkMode, IpcMode, PidMode, CgroupParent, OomScoreAdj],
    ["host", "host", "host", "kubepods-pod1.slice", 0],
  );
});

test("docker's own bridge publishes host ports; CNI's does it itself", () => {
  const portMappings = [
    { protocol: Protocol.UDP, containerPort: 53, hostPort: 5353, hostIp: "127.0.0.1" },
    { protocol: Protocol.TCP, containerPort: 80, hostPort: 0 },
  ];
  const config = PodSandboxConfig.fromPartial({ metadata: {}, portMappings });
  const bindings = (network: "cni" | "docker") =>
    (sandboxBody(config, { ...sandboxTraits, network }) as Body).HostConfig["PortBindings"];
  assert.deepEqual(bindings("docker"), { "53/udp": [{ HostPort: "5353", HostIp: "127.0.0.1" }] });
  assert.deepEqual(bindings("cni"), {});
});

for (const { pid, want } of [
  { pid: NamespaceMode.CONTAINER, want: undefined },
  { pid: NamespaceMode.POD, want: "container:sid" },
  { pid: NamespaceMode.NODE, want: "host" },
  { pid: NamespaceMode.TARGET, want: "container:other" },
]) {
  test(`processes of a container: mode ${pid} is ${want}`, () => {
    const namespaceOptions = { pid, targetId: "other" };
    const config = ContainerConfig.fromPartial({ linux: { securityContext: { namespaceOptions } } });
    const body = containerBody(config, PodSandboxConfig.fromPartial({}), containerTraits) as Body;
    assert.equal(body.HostConfig["PidMode"], want);
    assert.equal(body.HostConfig["NetworkMode"], "container:sid");
  });
}

test("an empty command leaves the image's; arguments alone replace the image's arguments", () => {
  const body = (config: object) =>
    containerBody(ContainerConfig.fromPartial(config), PodSandboxConfig.fromPartial({}), containerTraits) as Body;
  assert.deepEqual(["Entrypoint" in body({}), "Cmd" in body({})], [false, false]);
  assert.deepEqual([body({ args: ["a"] })["Entrypoint"], body({ args: ["a"] })["Cmd"]], [undefined, ["a"]]);
});

for (const { name, security, want } of [
  { name: "nobody in particular", security: {}, want: undefined },
  { name: "a number", security: { runAsUser: { value: 7n } }, want: "7" },
  { name: "a name and a group", security: { runAsUsername: "joe", runAsGroup: { value: 8n } }, want: "joe:8" },
]) {
  test(`user: ${name}`, () => assert.equal(userOf(LinuxContainerSecurityContext.fromPartial(security)), want));
}

test("a group without a user is refused", () => {
  assert.throws(
    () => userOf(LinuxContainerSecurityContext.fromPartial({ runAsGroup: { value: 8n } })),
    /runAsGroup is specified without a runAsUser/,
  );
});

for (const { name, security, content, want } of [
  { name: "nothing said", security: {}, content: undefined, want: ["seccomp=unconfined"] },
  {
    name: "docker's own",
    security: { seccomp: { profileType: ProfileType.RuntimeDefault } },
    content: undefined,
    want: [],
  },
  {
    name: "a file",
    security: { seccomp: { profileType: ProfileType.Localhost, localhostRef: "/p.json" } },
    content: '{ "defaultAction": "A" }',
    want: ['seccomp={"defaultAction":"A"}'],
  },
  {
    name: "no new rights, a profile and a label",
    security: {
      seccomp: { profileType: ProfileType.RuntimeDefault },
      noNewPrivs: true,
      apparmor: { profileType: ProfileType.Localhost, localhostRef: "web" },
      selinuxOptions: { level: "s0:c1" },
    },
    content: undefined,
    want: ["label=level:s0:c1", "no-new-privileges", "apparmor=web"],
  },
]) {
  test(`security options: ${name}`, () =>
    assert.deepEqual(securityOptions(LinuxContainerSecurityContext.fromPartial(security), content), want));
}

test("a profile by a relative path, or one that is no JSON, is refused", () => {
  const relative = { profileType: ProfileType.Localhost, localhostRef: "p.json" };
  assert.throws(() => seccompFileOf(relative), /must be absolute, but got relative path "p.json"/);
  const security = LinuxContainerSecurityContext.fromPartial({ seccomp: { ...relative, localhostRef: "/p" } });
  assert.throws(() => securityOptions(security, "{"), /cannot load seccomp profile "\/p"/);
});

test("memory has no swap beside it; what is not asked for is not sent", () => {
  const resources = LinuxContainerResources.fromPartial({ memoryLimitInBytes: 64n, cpuShares: 2n, oomScoreAdj: -5n });
  assert.deepEqual(limitFields(resources, 0), { Memory: 64, MemorySwap: 64, CpuShares: 2, OomScoreAdj: 0 });
  assert.deepEqual(updateFields(resources), { Memory: 64, MemorySwap: 64, CpuShares: 2 });
  assert.equal(cgroupParentFor("/a/b.slice", "systemd"), "b.slice");
});

test("a limit beyond what machines have is a number that docker takes", () => {
  const resources = LinuxContainerResources.fromPartial({ memoryLimitInBytes: 2n ** 63n - 1n });
  const { Memory } = limitFields(resources, 0) as { Memory: number };
  assert.ok(BigInt(JSON.stringify(Memory)) < 2n ** 63n, String(Memory));
});

test("mounts take any path; only labels of SELinux need the form with colons", () => {
  const mount = Mount.fromPartial({
    hostPath: "/a:b",
    containerPath: "/c",
    readonly: true,
    propagation: MountPropagation.PROPAGATION_HOST_TO_CONTAINER,
  });
  assert.deepEqual(mountFields([mount], { api: 41, selinux: true }).Mounts, [
    { Type: "bind", Source: "/a:b", Target: "/c", ReadOnly: true, BindOptions: { Propagation: "rslave" } },
  ]);
  const newer = mountFields([mount], { api: 44, selinux: false }).Mounts[0] as { BindOptions: object };
  assert.deepEqual(newer.BindOptions, { Propagation: "rslave", ReadOnlyNonRecursive: true });
  const labelled = Mount.fromPartial({ hostPath: "/a", containerPath: "/c", selinuxRelabel: true });
  assert.deepEqual(mountFields([labelled], { api: 41, selinux: true }).Binds, ["/a:/c:Z"]);
  assert.throws(
    () => mountFields([Mount.fromPartial({ image: { image: "x" } })], { api: 41, selinux: false }),
    /cannot mount images/,
  );
});
