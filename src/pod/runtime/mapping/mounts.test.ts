import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContainer, exampleContext, examplePod } from "../../../../test/support/example-context.ts";
import { type Mount, MountPropagation } from "../../../connections/cri/index.ts";
import type { VolumeMount } from "../../../ground/model/index.ts";
import type { ContainerContext, DeviceGrants, PodVolume, SubPathRequest } from "./context.ts";
import { noDeviceGrants } from "./context.ts";
import { cdiDevices, containerDevices } from "./devices.ts";
import { containerEnv } from "./env.ts";
import { deviceMounts, volumeMounts } from "./mounts.ts";

const volumes = new Map<string, PodVolume>([
  ["data", { type: "filesystem", hostPath: "/vols/data", readOnly: false, relabel: true }],
  ["config", { type: "filesystem", hostPath: "/vols/config", readOnly: true, relabel: true }],
  ["host", { type: "filesystem", hostPath: "/srv", readOnly: false, relabel: false }],
  ["disk", { type: "block", devicePath: "/pods/u/volumeDevices/disk", readOnly: false }],
  ["frozen", { type: "block", devicePath: "/pods/u/volumeDevices/frozen", readOnly: true }],
  ["tools", { type: "image", image: "tools:1" }],
]);

const signal = new AbortController().signal;

async function mountsOf(
  mounts: readonly VolumeMount[],
  changes: Partial<ContainerContext> = {},
): ReturnType<typeof volumeMounts> {
  const container = exampleContainer({ volumeMounts: mounts, env: [{ name: "DIR", value: "abc" }] });
  const pod = examplePod({ containers: [container] });
  const annotated = { ...pod, metadata: { ...pod.metadata, annotations: { team: "a" } } };
  const context = exampleContext({ volumes, ...changes });
  return await volumeMounts(annotated, container, await containerEnv(annotated, container, context, signal), context);
}

async function only(mount: VolumeMount, changes: Partial<ContainerContext> = {}): Promise<Mount> {
  const [first] = await mountsOf([mount], changes);
  assert.ok(first !== undefined);
  return first;
}

test("mounts keep the order of the spec", async () => {
  const mounts = await mountsOf([
    { name: "host", mountPath: "/b" },
    { name: "data", mountPath: "/a" },
  ]);
  assert.deepEqual(
    mounts.map(({ hostPath, containerPath }) => `${hostPath}:${containerPath}`),
    ["/srv:/b", "/vols/data:/a"],
  );
});

test("a plain mount, complete", async () => {
  assert.deepEqual(await only({ name: "data", mountPath: "/data" }), {
    containerPath: "/data",
    hostPath: "/vols/data",
    readonly: false,
    selinuxRelabel: false,
    propagation: MountPropagation.PROPAGATION_PRIVATE,
    uidMappings: [],
    gidMappings: [],
    recursiveReadOnly: false,
    image: undefined,
    imageSubPath: "",
  });
});

test("a relative path is taken from the root", async () => {
  assert.equal((await only({ name: "data", mountPath: "data/here" })).containerPath, "/data/here");
});

test("read-only by the mount or by the volume", async () => {
  assert.equal((await only({ name: "data", mountPath: "/d", readOnly: true })).readonly, true);
  assert.equal((await only({ name: "config", mountPath: "/d" })).readonly, true);
  assert.equal((await only({ name: "data", mountPath: "/d", readOnly: false })).readonly, false);
});

test("relabelled for SELinux when the volume allows it and the host has it", async () => {
  const relabel = async (name: string, selinuxEnabled: boolean): Promise<boolean> =>
    (await only({ name, mountPath: "/d" }, { selinuxEnabled })).selinuxRelabel;
  assert.equal(await relabel("data", true), true);
  assert.equal(await relabel("host", true), false);
  assert.equal(await relabel("data", false), false);
});

for (const [mountPropagation, propagation] of [
  [undefined, MountPropagation.PROPAGATION_PRIVATE],
  ["None", MountPropagation.PROPAGATION_PRIVATE],
  ["HostToContainer", MountPropagation.PROPAGATION_HOST_TO_CONTAINER],
  ["Bidirectional", MountPropagation.PROPAGATION_BIDIRECTIONAL],
] as const) {
  test(`propagation ${mountPropagation}`, async () => {
    assert.equal((await only({ name: "data", mountPath: "/d", mountPropagation })).propagation, propagation);
  });
}

const withSupport = { name: "", recursiveReadOnlyMounts: true, userNamespaces: false };
const without = { name: "", recursiveReadOnlyMounts: false, userNamespaces: false };

for (const [mode, runtimeHandler, expected] of [
  [undefined, withSupport, false],
  ["Disabled", withSupport, false],
  ["IfPossible", withSupport, true],
  ["IfPossible", without, false],
  ["Enabled", withSupport, true],
] as const) {
  test(`recursive read-only ${mode}, runtime support ${runtimeHandler.recursiveReadOnlyMounts}`, async () => {
    const mount = { name: "data", mountPath: "/d", readOnly: true, recursiveReadOnly: mode };
    assert.equal((await only(mount, { runtimeHandler })).recursiveReadOnly, expected);
  });
}

const failing = (problem: string): string => `failed to resolve recursive read-only mode: ${problem}`;
const refused: readonly (readonly [string, VolumeMount, string])[] = [
  ["an unknown volume", { name: "nope", mountPath: "/d" }, 'cannot find volume "nope" to mount into container "app"'],
  ["a block volume", { name: "disk", mountPath: "/d" }, 'cannot find volume "disk" to mount into container "app"'],
  [
    "unknown propagation",
    { name: "data", mountPath: "/d", mountPropagation: "Sideways" },
    'invalid MountPropagation mode: "Sideways"',
  ],
  [
    "recursive read-only without support",
    { name: "data", mountPath: "/d", readOnly: true, recursiveReadOnly: "Enabled" },
    failing('volume "data" requested recursive read-only mode, but it is not supported by the runtime'),
  ],
  [
    "recursive read-only, yet writable",
    { name: "data", mountPath: "/d", recursiveReadOnly: "IfPossible" },
    failing('volume "data" requested recursive read-only mode, but it is not read-only'),
  ],
  [
    "recursive read-only with propagation",
    {
      name: "data",
      mountPath: "/d",
      readOnly: true,
      recursiveReadOnly: "IfPossible",
      mountPropagation: "HostToContainer",
    },
    failing(
      'volume "data" requested recursive read-only mode, but it is not compatible with propagation "HostToContainer"',
    ),
  ],
  [
    "an unknown recursive mode",
    { name: "data", mountPath: "/d", readOnly: true, recursiveReadOnly: "Odd" },
    failing('unknown recursive read-only mode "Odd"'),
  ],
  [
    "an absolute sub-path",
    { name: "data", mountPath: "/d", subPath: "/etc" },
    "error SubPath `/etc` must not be an absolute path",
  ],
  [
    "a sub-path with steps back",
    { name: "data", mountPath: "/d", subPath: "a/../../b" },
    "unable to provision SubPath `a/../../b`: must not contain '..'",
  ],
  [
    "a sub-path with steps back from a variable's place",
    { name: "data", mountPath: "/d", subPathExpr: "$(DIR)/.." },
    "unable to provision SubPath `abc/..`: must not contain '..'",
  ],
  ["a missing variable", { name: "data", mountPath: "/d", subPathExpr: "$(NOPE)" }, "missing value for NOPE"],
];

for (const [name, mount, message] of refused) {
  test(`refused: ${name}`, async () => {
    await assert.rejects(only(mount, { runtimeHandler: without }), { message });
  });
}

test("sub-paths are made and resolved by their port, variables expanded", async () => {
  const requests: SubPathRequest[] = [];
  const subPaths = {
    create: async (request: SubPathRequest): Promise<void> => {
      requests.push(request);
    },
    prepare: async ({ mountIndex }: SubPathRequest): Promise<string> => `/safe/${mountIndex}`,
  };
  const mounts = await mountsOf(
    [
      { name: "host", mountPath: "/a" },
      { name: "data", mountPath: "/b", subPath: "x/y" },
      { name: "data", mountPath: "/c", subPathExpr: "$(DIR)/$$(DIR)" },
    ],
    { subPaths },
  );
  assert.deepEqual(
    mounts.map(({ hostPath }) => hostPath),
    ["/srv", "/safe/1", "/safe/2"],
  );
  assert.deepEqual(
    requests.map(({ volumePath, subPath, volumeName, containerName }) => [
      volumePath,
      subPath,
      volumeName,
      containerName,
    ]),
    [
      ["/vols/data", "x/y", "data", "app"],
      ["/vols/data", "abc/$(DIR)", "data", "app"],
    ],
  );
});

test("names with two dots in them are no steps back", async () => {
  assert.equal(
    (await only({ name: "data", mountPath: "/d", subPath: "..data/a..b" })).hostPath,
    "/vols/data/safe/..data/a..b",
  );
});

for (const [step, message] of [
  ["create", 'failed to create subPath directory for volumeMount "data" of container "app"'],
  ["prepare", 'failed to prepare subPath for volumeMount "data" of container "app"'],
] as const) {
  test(`trouble to ${step} a sub-path hides what the host looks like`, async () => {
    const fail = async (): Promise<never> => {
      throw new Error("/etc/shadow is a link");
    };
    const subPaths = { ...exampleContext().subPaths, [step]: fail };
    await assert.rejects(only({ name: "data", mountPath: "/d", subPath: "x" }, { subPaths }), {
      name: "ConfigError",
      message,
    });
  });
}

test("an image as a volume", async () => {
  const mount = await only(
    { name: "tools", mountPath: "/tools", subPath: "bin" },
    {
      runtimeHandler: { ...without, name: "kata" },
      selinuxEnabled: true,
      image: { ref: "sha256:app", mounted: new Map([["tools", "sha256:tools"]]) },
    },
  );
  const { hostPath, readonly, image, imageSubPath, selinuxRelabel } = mount;
  assert.deepEqual(
    { hostPath, readonly, image, imageSubPath, selinuxRelabel },
    {
      hostPath: "",
      readonly: true,
      selinuxRelabel: true,
      imageSubPath: "bin",
      image: {
        image: "sha256:tools",
        userSpecifiedImage: "tools:1",
        runtimeHandler: "kata",
        annotations: { team: "a" },
      },
    },
  );
});

const grants: DeviceGrants = {
  ...noDeviceGrants,
  mounts: [{ hostPath: "/usr/lib/gpu", containerPath: "/lib/gpu", readOnly: true }],
  devices: [{ hostPath: "/dev/gpu0", containerPath: "/dev/gpu", permissions: "rw" }],
  cdiDevices: ["vendor/dra=1", "vendor/plugin=2", "vendor/dra=1"],
};

test("mounts, devices and CDI names of device plugins", () => {
  assert.deepEqual(
    deviceMounts(grants).map(({ hostPath, containerPath, readonly }) => [hostPath, containerPath, readonly]),
    [["/usr/lib/gpu", "/lib/gpu", true]],
  );
  assert.deepEqual(cdiDevices(grants), [{ name: "vendor/dra=1" }, { name: "vendor/plugin=2" }]);
});

test("raw block volumes come after plugin devices", () => {
  const container = exampleContainer({
    volumeDevices: [
      { name: "disk", devicePath: "/dev/xvda" },
      { name: "frozen", devicePath: "/dev/xvdb" },
    ],
  });
  assert.deepEqual(containerDevices(container, grants, volumes), [
    { hostPath: "/dev/gpu0", containerPath: "/dev/gpu", permissions: "rw" },
    { hostPath: "/pods/u/volumeDevices/disk", containerPath: "/dev/xvda", permissions: "mrw" },
    { hostPath: "/pods/u/volumeDevices/frozen", containerPath: "/dev/xvdb", permissions: "r" },
  ]);
});

for (const [name, devicePath, message] of [
  ["data", "/dev/x", 'cannot find volume "data" to pass into container "app"'],
  ["nope", "/dev/x", 'cannot find volume "nope" to pass into container "app"'],
  ["disk", "dev/x", "error DevicePath `dev/x` must be an absolute path"],
] as const) {
  test(`raw block volume ${name} at ${devicePath} is refused`, () => {
    const container = exampleContainer({ volumeDevices: [{ name, devicePath }] });
    assert.throws(() => containerDevices(container, noDeviceGrants, volumes), { name: "ConfigError", message });
  });
}
