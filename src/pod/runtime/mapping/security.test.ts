import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { exampleContainer, exampleContext, examplePod } from "../../../../test/support/example-context.ts";
import {
  NamespaceOption,
  SecurityProfile_ProfileType as ProfileType,
  SupplementalGroupsPolicy,
} from "../../../connections/cri/index.ts";
import type {
  AppArmorProfile,
  IdentifiedPod,
  PodSecurityContext,
  SecurityContext,
} from "../../../ground/model/index.ts";
import type { ImageUser } from "./context.ts";
import { verifyRunAsNonRoot } from "./non-root.ts";
import { procPaths, readThermalThrottlePaths } from "./proc-paths.ts";
import { appArmorProfile, seccompProfile } from "./profiles.ts";
import { containerSecurityContext, sandboxSecurityContext } from "./security-context.ts";

const namespaces = NamespaceOption.fromPartial({ targetId: "mark" });

function containerContext(
  own: SecurityContext | undefined,
  ofPod: PodSecurityContext | undefined = {},
  more: { image?: ImageUser; volumeGroups?: readonly number[] } = {},
): ReturnType<typeof containerSecurityContext> {
  const container = exampleContainer({ securityContext: own });
  const pod = examplePod({ containers: [container], securityContext: ofPod });
  return containerSecurityContext(pod, container, { ...exampleContext(), image: {}, ...more, namespaces });
}

function sandboxContext(
  spec: Partial<IdentifiedPod["spec"]>,
  volumeGroups: readonly number[] = [],
): ReturnType<typeof sandboxSecurityContext> {
  return sandboxSecurityContext(examplePod(spec), { namespaces, volumeGroups });
}

test("a container without wishes: root, default masks, unconfined, nothing privileged", () => {
  for (const ofPod of [undefined, {}]) {
    const context = containerContext(undefined, ofPod);
    assert.deepEqual(
      {
        ...context,
        maskedPaths: context.maskedPaths.length,
        readonlyPaths: context.readonlyPaths.length,
      },
      {
        capabilities: undefined,
        privileged: false,
        namespaceOptions: namespaces,
        selinuxOptions: undefined,
        runAsUser: { value: 0n },
        runAsUsername: "",
        readonlyRootfs: false,
        supplementalGroups: [],
        apparmorProfile: "",
        seccompProfilePath: "",
        noNewPrivs: false,
        runAsGroup: undefined,
        maskedPaths: 12,
        readonlyPaths: 5,
        seccomp: { profileType: ProfileType.Unconfined, localhostRef: "" },
        apparmor: undefined,
        supplementalGroupsPolicy: SupplementalGroupsPolicy.Merge,
      },
    );
  }
});

test("capabilities are passed on as written, none of them ambient", () => {
  assert.deepEqual(
    containerContext({ capabilities: { add: ["NET_ADMIN", "CAP_SYS_TIME"], drop: ["ALL"] } }).capabilities,
    {
      addCapabilities: ["NET_ADMIN", "CAP_SYS_TIME"],
      dropCapabilities: ["ALL"],
      addAmbientCapabilities: [],
    },
  );
  assert.deepEqual(containerContext({ capabilities: {} }).capabilities?.addCapabilities, []);
});

test("flags of the container alone", () => {
  const context = containerContext({ privileged: true, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false });
  assert.deepEqual([context.privileged, context.readonlyRootfs, context.noNewPrivs], [true, true, true]);
  assert.equal(containerContext({ allowPrivilegeEscalation: true }).noNewPrivs, false);
});

for (const [name, own, ofPod, image, user, username] of [
  ["the container's", { runAsUser: 5 }, { runAsUser: 6 }, { uid: 7n }, 5n, ""],
  ["the pod's", {}, { runAsUser: 6 }, { uid: 7n }, 6n, ""],
  ["zero is a user", { runAsUser: 0 }, { runAsUser: 6 }, { uid: 7n }, 0n, ""],
  ["the image's number", {}, {}, { uid: 7n }, 7n, ""],
  ["the image's name", {}, {}, { username: "nobody" }, undefined, "nobody"],
  ["a name is not needed once there is a number", { runAsUser: 5 }, {}, { username: "nobody" }, 5n, ""],
  ["an image without a user", {}, {}, { username: "" }, 0n, ""],
] as const) {
  test(`run as user: ${name}`, () => {
    const context = containerContext(own, ofPod, { image });
    assert.deepEqual([context.runAsUser?.value, context.runAsUsername], [user, username]);
  });
}

test("run as group and SELinux options: the container's before the pod's", () => {
  const ofPod = { runAsGroup: 6, seLinuxOptions: { level: "s0:c1", type: "t" } };
  const inherited = containerContext({}, ofPod);
  assert.deepEqual(inherited.runAsGroup, { value: 6n });
  assert.deepEqual(inherited.selinuxOptions, { user: "", role: "", type: "t", level: "s0:c1" });
  const own = containerContext({ runAsGroup: 0, seLinuxOptions: { user: "u", role: "r" } }, ofPod);
  assert.deepEqual(own.runAsGroup, { value: 0n });
  assert.deepEqual(own.selinuxOptions, { user: "u", role: "r", type: "", level: "" });
});

test("groups: of a container fsGroup, supplemental, volumes; of a sandbox fsGroup, volumes, supplemental", () => {
  const ofPod = { fsGroup: 10, supplementalGroups: [20, 30] };
  assert.deepEqual(containerContext({}, ofPod, { volumeGroups: [40, 20] }).supplementalGroups, [10n, 20n, 30n, 40n]);
  assert.deepEqual(sandboxContext({ securityContext: ofPod }, [40, 20]).supplementalGroups, [10n, 40n, 20n, 30n]);
});

test("groups of volumes reach a container even when the pod has no security context", () => {
  assert.deepEqual(containerContext({}, undefined, { volumeGroups: [40] }).supplementalGroups, [40n]);
});

test("the policy of supplemental groups", () => {
  const policy = (supplementalGroupsPolicy: string): unknown => [
    containerContext({}, { supplementalGroupsPolicy }).supplementalGroupsPolicy,
    sandboxContext({ securityContext: { supplementalGroupsPolicy } }).supplementalGroupsPolicy,
  ];
  assert.deepEqual(policy("Merge"), [0, 0]);
  assert.deepEqual(policy("Strict"), [1, 1]);
  assert.throws(() => policy("Loose"), { name: "ConfigError", message: "unsupported supplementalGroupsPolicy: Loose" });
});

test("a sandbox is confined whatever its pod asks for", () => {
  const context = sandboxContext({
    securityContext: {
      runAsUser: 5,
      runAsGroup: 6,
      seccompProfile: { type: "Unconfined" },
      appArmorProfile: { type: "RuntimeDefault" },
      seLinuxOptions: { level: "s0" },
    },
  });
  assert.deepEqual(context.seccomp, { profileType: ProfileType.RuntimeDefault, localhostRef: "" });
  assert.equal(context.apparmor, undefined);
  assert.equal(context.readonlyRootfs, false);
  assert.deepEqual(context.runAsUser, { value: 5n });
  assert.deepEqual(context.runAsGroup, { value: 6n });
  assert.equal(context.selinuxOptions?.level, "s0");
  assert.deepEqual(context.namespaceOptions, namespaces);
});

test("a sandbox of a pod without security context names no namespaces", () => {
  assert.equal(sandboxContext({ securityContext: undefined }).namespaceOptions, undefined);
});

test("a sandbox is privileged when any container is", () => {
  const privileged = { securityContext: { privileged: true } };
  assert.equal(sandboxContext({}).privileged, false);
  assert.equal(sandboxContext({ containers: [exampleContainer(), exampleContainer(privileged)] }).privileged, true);
  assert.equal(sandboxContext({ initContainers: [exampleContainer(privileged)] }).privileged, true);
  assert.equal(sandboxContext({ ephemeralContainers: [{ name: "debug", ...privileged }] }).privileged, true);
});

const roots = { rootDir: "/var/lib/kubelet", seccompDefault: false };

for (const [name, own, ofPod, type, ref] of [
  ["none", undefined, undefined, ProfileType.Unconfined, ""],
  ["runtime default", { type: "RuntimeDefault" }, undefined, ProfileType.RuntimeDefault, ""],
  ["the pod's", undefined, { type: "RuntimeDefault" }, ProfileType.RuntimeDefault, ""],
  ["the container's first", { type: "Unconfined" }, { type: "RuntimeDefault" }, ProfileType.Unconfined, ""],
  [
    "a file of the node",
    { type: "Localhost", localhostProfile: "profiles/a.json" },
    undefined,
    ProfileType.Localhost,
    "/var/lib/kubelet/seccomp/profiles/a.json",
  ],
] as const) {
  test(`seccomp: ${name}`, () => {
    const container = exampleContainer({ securityContext: { seccompProfile: own } });
    const pod = examplePod({ securityContext: { seccompProfile: ofPod } });
    assert.deepEqual(seccompProfile(pod, container, roots), { profileType: type, localhostRef: ref });
  });
}

test("seccomp: the node's default replaces no profile, never an explicit one", () => {
  const byDefault = { ...roots, seccompDefault: true };
  assert.equal(seccompProfile(examplePod(), exampleContainer(), byDefault).profileType, ProfileType.RuntimeDefault);
  const unconfined = exampleContainer({ securityContext: { seccompProfile: { type: "Unconfined" } } });
  assert.equal(seccompProfile(examplePod(), unconfined, byDefault).profileType, ProfileType.Unconfined);
});

for (const localhostProfile of [undefined, ""]) {
  test(`seccomp: Localhost with ${JSON.stringify(localhostProfile)} is refused`, () => {
    const container = exampleContainer({
      securityContext: { seccompProfile: { type: "Localhost", localhostProfile } },
    });
    assert.throws(() => seccompProfile(examplePod(), container, roots), {
      name: "ConfigError",
      message: "localhostProfile must be set if seccompProfile type is Localhost.",
    });
  });
}

const annotationKey = "container.apparmor.security.beta.kubernetes.io/app";

interface AppArmorWishes {
  readonly own?: AppArmorProfile;
  readonly annotation?: string;
  readonly ofPod?: AppArmorProfile;
}

function appArmor({ own, annotation, ofPod }: AppArmorWishes): unknown {
  const pod = examplePod({ securityContext: { appArmorProfile: ofPod } });
  const annotations = annotation === undefined ? {} : { [annotationKey]: annotation };
  const container = exampleContainer({ securityContext: { appArmorProfile: own } });
  const { profile, text } = appArmorProfile({ ...pod, metadata: { ...pod.metadata, annotations } }, container);
  return [profile?.profileType, profile?.localhostRef, text];
}

const runtimeDefault = { type: "RuntimeDefault" };
const unconfined = { type: "Unconfined" };
const localhost = { type: "Localhost", localhostProfile: "p" };
const isRuntimeDefault = [ProfileType.RuntimeDefault, "", "runtime/default"];
const isUnconfined = [ProfileType.Unconfined, "", "unconfined"];
const isLocalhost = [ProfileType.Localhost, "p", "localhost/p"];

const appArmorRows: readonly (readonly [string, AppArmorWishes, unknown])[] = [
  ["none", {}, [undefined, undefined, ""]],
  ["field RuntimeDefault", { own: runtimeDefault }, isRuntimeDefault],
  ["field Unconfined", { own: unconfined }, isUnconfined],
  ["field Localhost", { own: localhost }, isLocalhost],
  ["annotation runtime/default", { annotation: "runtime/default" }, isRuntimeDefault],
  ["annotation unconfined", { annotation: "unconfined" }, isUnconfined],
  ["annotation localhost", { annotation: "localhost/p" }, isLocalhost],
  ["container field before annotation", { own: unconfined, annotation: "runtime/default" }, isUnconfined],
  ["annotation before pod field", { annotation: "unconfined", ofPod: runtimeDefault }, isUnconfined],
  ["pod field", { ofPod: runtimeDefault }, isRuntimeDefault],
  ["empty annotation", { annotation: "", ofPod: unconfined }, isUnconfined],
];

for (const [name, wishes, expected] of appArmorRows) {
  test(`AppArmor: ${name}`, () => assert.deepEqual(appArmor(wishes), expected));
}

test("AppArmor: a profile without a name or of an unknown type is refused", () => {
  assert.throws(() => appArmor({ own: { type: "Localhost" } }), { message: "missing localhost apparmor profile name" });
  assert.throws(() => appArmor({ own: { type: "Odd" } }), { message: 'unknown apparmor profile type: "Odd"' });
});

test("procMount: the defaults, machine-specific paths, or nothing", () => {
  const { masked, readOnly } = procPaths(undefined, ["/sys/devices/system/cpu/cpu0/thermal_throttle"]);
  assert.deepEqual(masked, [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
    "/sys/devices/system/cpu/cpu0/thermal_throttle",
  ]);
  assert.deepEqual(readOnly, ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"]);
  assert.deepEqual(procPaths("Default", []), procPaths(undefined, []));
  assert.deepEqual(procPaths("Unmasked", ["/x"]), { masked: [], readOnly: [] });
});

test("procMount is heeded for privileged containers too", () => {
  assert.equal(containerContext({ privileged: true }).maskedPaths.length, 12);
  assert.equal(containerContext({ privileged: true, procMount: "Unmasked" }).maskedPaths.length, 0);
});

test("thermal_throttle directories of a made-up machine", async () => {
  const root = await mkdtemp(join(tmpdir(), "cpus-"));
  try {
    assert.deepEqual(await readThermalThrottlePaths(root), []);
    const directory = join(root, "sys/devices/system/cpu");
    await mkdir(join(directory, "cpu0/thermal_throttle"), { recursive: true });
    await mkdir(join(directory, "cpu2/thermal_throttle"), { recursive: true });
    await mkdir(join(directory, "cpu9/thermal_throttle"), { recursive: true });
    await writeFile(join(directory, "possible"), "0-2,4\n");
    assert.deepEqual(await readThermalThrottlePaths(root), [
      "/sys/devices/system/cpu/cpu0/thermal_throttle",
      "/sys/devices/system/cpu/cpu2/thermal_throttle",
    ]);
  } finally {
    await rm(root, { recursive: true });
  }
});

const where = '(pod: "web_shop(u-1)", container: app)';

for (const [name, own, ofPod, image, message] of [
  ["not asked for", {}, {}, {}, undefined],
  ["asked for and then not", { runAsNonRoot: false }, { runAsNonRoot: true }, {}, undefined],
  ["a user of the container", { runAsNonRoot: true, runAsUser: 1 }, {}, {}, undefined],
  ["a user of the pod", { runAsNonRoot: true }, { runAsUser: 1 }, { uid: 0n }, undefined],
  ["a negative user passes as upstream", { runAsNonRoot: true, runAsUser: -1 }, {}, {}, undefined],
  ["an image with a number", {}, { runAsNonRoot: true }, { uid: 1000n }, undefined],
  ["the largest number", {}, { runAsNonRoot: true }, { uid: 2147483647n }, undefined],
  [
    "user 0",
    { runAsUser: 0 },
    { runAsNonRoot: true },
    { uid: 1n },
    `container's runAsUser breaks non-root policy ${where}`,
  ],
  [
    "user 0 of the pod",
    { runAsNonRoot: true },
    { runAsUser: 0 },
    { uid: 1n },
    `container's runAsUser breaks non-root policy ${where}`,
  ],
  [
    "an image with a name",
    { runAsNonRoot: true },
    {},
    { username: "www" },
    `container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root ${where}`,
  ],
  [
    "an image with user 0",
    { runAsNonRoot: true },
    {},
    { uid: 0n },
    `container has runAsNonRoot and image will run as root ${where}`,
  ],
  [
    "an image without a user",
    { runAsNonRoot: true },
    {},
    {},
    `container has runAsNonRoot and image will run as root ${where}`,
  ],
  [
    "an image with too large a number",
    { runAsNonRoot: true },
    {},
    { uid: 2147483648n },
    "container has runAsNonRoot and image has an invalid user id (2147483648). (Must be 1-(2147483647)): " +
      `must be between 0 and 2147483647, inclusive ${where}`,
  ],
] as const) {
  test(`runAsNonRoot: ${name}`, () => {
    const verify = (): void =>
      verifyRunAsNonRoot(examplePod({ securityContext: ofPod }), exampleContainer({ securityContext: own }), image);
    if (message === undefined) verify();
    else assert.throws(verify, { name: "ConfigError", message });
  });
}
