import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { exampleContainer, exampleContext, examplePod } from "../../../../test/support/example-context.ts";
import {
  ContainerConfig,
  NamespaceMode,
  SecurityProfile_ProfileType as ProfileType,
  Signal,
} from "../../../connections/cri/index.ts";
import { silentLogger } from "../../../ground/base/index.ts";
import type { Container, IdentifiedPod } from "../../../ground/model/index.ts";
import { containerConfig } from "./container.ts";
import type { ContainerContext } from "./context.ts";
import { ContainerConfigError } from "./errors.ts";

const signal = new AbortController().signal;

/** Directories of a node that go away with the test; the pod's own directory is there, as the worker makes it. */
async function onNode(run: (node: ContainerContext, root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "node-"));
  try {
    await mkdir(join(root, "pods/u-1"), { recursive: true });
    await run(exampleContext({ rootDir: root, podLogsDir: join(root, "logs") }), root);
  } finally {
    await rm(root, { recursive: true });
  }
}

async function configOf(
  context: ContainerContext,
  fields: Partial<Container> = {},
  spec: Partial<IdentifiedPod["spec"]> = {},
): Promise<ContainerConfig> {
  const container = exampleContainer(fields);
  return await containerConfig(examplePod({ containers: [container], ...spec }), container, context, signal);
}

test("a container with a bit of everything, every field", async () => {
  await onNode(async (node, root) => {
    const config = await configOf(
      { ...node, restartCount: 4 },
      {
        command: ["serve", "$(WHO)", "$$(WHO)", "$(NOBODY)"],
        args: ["--name=$(WHO)"],
        workingDir: "/srv",
        env: [{ name: "WHO", value: "me" }],
        stdin: true,
        stdinOnce: true,
        tty: true,
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
        resources: { requests: { cpu: "100m" } },
      },
    );
    const terminationFile = config.mounts[1]?.hostPath ?? "";
    const masked = config.linux?.securityContext?.maskedPaths ?? [];
    const readOnly = config.linux?.securityContext?.readonlyPaths ?? [];
    assert.match(terminationFile, new RegExp(`^${root}/pods/u-1/containers/app/[0-9a-f]{8}$`));
    assert.deepEqual([masked.length, readOnly.length], [12, 5]);
    const expected = ContainerConfig.fromPartial({
      metadata: { name: "app", attempt: 4 },
      image: { image: "sha256:app", userSpecifiedImage: "app:1" },
      command: ["serve", "me", "$(WHO)", "$(NOBODY)"],
      args: ["--name=me"],
      workingDir: "/srv",
      envs: [{ key: "WHO", value: Buffer.from("me") }],
      mounts: [
        { containerPath: "/etc/hosts", hostPath: join(root, "pods/u-1/etc-hosts") },
        { containerPath: "/dev/termination-log", hostPath: terminationFile },
      ],
      labels: {
        "io.kubernetes.pod.name": "web",
        "io.kubernetes.pod.namespace": "shop",
        "io.kubernetes.pod.uid": "u-1",
        "io.kubernetes.container.name": "app",
      },
      annotations: config.annotations,
      logPath: "app/4.log",
      stdin: true,
      stdinOnce: true,
      tty: true,
      stopSignal: Signal.RUNTIME_DEFAULT,
      linux: {
        resources: { cpuShares: 102n, cpuPeriod: 100_000n, oomScoreAdj: 999n },
        securityContext: {
          namespaceOptions: {
            network: NamespaceMode.POD,
            pid: NamespaceMode.CONTAINER,
            ipc: NamespaceMode.POD,
            usernsOptions: { mode: NamespaceMode.NODE },
          },
          runAsUser: { value: 0n },
          maskedPaths: masked,
          readonlyPaths: readOnly,
          seccomp: { profileType: ProfileType.Unconfined },
        },
      },
    });
    assert.deepEqual(config, expected);
    assert.equal(config.annotations["io.kubernetes.container.restartCount"], "4");
    assert.deepEqual(ContainerConfig.decode(ContainerConfig.encode(config).finish()), config);
  });
});

test("the files it names are there", async () => {
  await onNode(async (node, root) => {
    await configOf(node, { terminationMessagePath: "/t" });
    assert.equal((await stat(join(root, "logs/shop_web_u-1/app"))).mode & 0o777, 0o755);
    assert.match(await readFile(join(root, "pods/u-1/etc-hosts"), "utf8"), /\n10\.1\.0\.2\tweb\n$/);
  });
});

test("mounts: devices, volumes, hosts file, termination file, all in the pod's user namespace", async () => {
  await onNode(async (node) => {
    const { mounts } = await configOf(
      {
        ...node,
        runtimeHandler: { name: "", recursiveReadOnlyMounts: false, userNamespaces: true },
        volumes: new Map([["v", { type: "filesystem", hostPath: "/v", readOnly: false, relabel: false }]]),
        devices: {
          ...node.devices,
          mounts: [{ hostPath: "/lib/gpu", containerPath: "/gpu", readOnly: true }],
        },
      },
      { volumeMounts: [{ name: "v", mountPath: "/data" }], terminationMessagePath: "/t" },
      { hostUsers: false },
    );
    assert.deepEqual(
      mounts.map(({ containerPath }) => containerPath),
      ["/gpu", "/data", "/etc/hosts", "/t"],
    );
    const mapping = { hostId: 131_072, containerId: 0, length: 65_536 };
    for (const { uidMappings, gidMappings } of mounts)
      assert.deepEqual([uidMappings, gidMappings], [[mapping], [mapping]]);
  });
});

test("device grants: variables, annotations, devices, CDI names", async () => {
  await onNode(async (node) => {
    const config = await configOf(
      {
        ...node,
        devices: {
          env: new Map([["GPU", "0"]]),
          annotations: { "vendor.com/gpu": "yes" },
          mounts: [],
          devices: [{ hostPath: "/dev/gpu0", containerPath: "/dev/gpu0", permissions: "rw" }],
          cdiDevices: ["vendor.com/gpu=0"],
        },
      },
      { args: ["$(GPU)"] },
    );
    assert.deepEqual(config.args, ["0"]);
    assert.deepEqual(config.envs, [{ key: "GPU", value: Buffer.from("0") }]);
    assert.equal(config.annotations["vendor.com/gpu"], "yes");
    assert.equal(config.devices.length, 1);
    assert.deepEqual(config.CDIDevices, [{ name: "vendor.com/gpu=0" }]);
  });
});

test("before the pod has an address there is no hosts file, and without a path no termination file", async () => {
  await onNode(async (node) => {
    assert.deepEqual((await configOf({ ...node, podIps: [] })).mounts, []);
  });
});

test("SELinux hosts relabel what the agent makes", async () => {
  await onNode(async (node) => {
    const { mounts } = await configOf({ ...node, selinuxEnabled: true }, { terminationMessagePath: "/t" });
    assert.deepEqual(
      mounts.map(({ selinuxRelabel }) => selinuxRelabel),
      [true, true],
    );
  });
});

test("stop signals are behind their gate", async () => {
  await onNode(async (node) => {
    const lifecycle = { stopSignal: "SIGUSR1" };
    assert.equal((await configOf(node, { lifecycle })).stopSignal, Signal.RUNTIME_DEFAULT);
    const gates = { ...node.gates, containerStopSignals: true };
    assert.equal((await configOf({ ...node, gates }, { lifecycle })).stopSignal, Signal.SIGUSR1);
  });
});

test("an ephemeral container looks into its target", async () => {
  await onNode(async (node) => {
    const context = { ...node, containerIdOf: (name: string) => (name === "app" ? "id-app" : undefined) };
    const pod = examplePod({ ephemeralContainers: [{ name: "debug", targetContainerName: "app" }] });
    const config = await containerConfig(pod, exampleContainer({ name: "debug" }), context, signal);
    const options = config.linux?.securityContext?.namespaceOptions;
    assert.deepEqual([options?.pid, options?.targetId], [NamespaceMode.TARGET, "id-app"]);
  });
});

for (const [name, fields, spec, message] of [
  [
    "a root image under runAsNonRoot",
    { securityContext: { runAsNonRoot: true } },
    {},
    'container has runAsNonRoot and image will run as root (pod: "web_shop(u-1)", container: app)',
  ],
  [
    "a missing volume",
    { volumeMounts: [{ name: "v", mountPath: "/v" }] },
    {},
    'cannot find volume "v" to mount into container "app"',
  ],
  [
    "a missing variable in a sub-path",
    { volumeMounts: [{ name: "there", mountPath: "/v", subPathExpr: "$(X)" }] },
    {},
    "missing value for X",
  ],
  [
    "an unsupported field",
    { env: [{ name: "A", valueFrom: { fieldRef: { fieldPath: "spec.x" } } }] },
    {},
    "unsupported fieldPath: spec.x",
  ],
  [
    "no API server for a secret",
    { envFrom: [{ secretRef: { name: "s" } }] },
    {},
    "couldn't get secret shop/s, no kubeClient defined",
  ],
  ["a bad host name", {}, { hostname: "a.b" }, 'pod Hostname "a.b" is not a valid DNS label: must not contain dots'],
] as const) {
  test(`${name} is a CreateContainerConfigError`, async () => {
    await onNode(async (node) => {
      const volumes = new Map([
        ["there", { type: "filesystem", hostPath: "/v", readOnly: false, relabel: false }],
      ] as const);
      await assert.rejects(configOf({ ...node, volumes }, fields, spec), (error) => {
        assert.ok(error instanceof ContainerConfigError);
        assert.deepEqual([error.reason, error.message], ["CreateContainerConfigError", message]);
        return true;
      });
    });
  });
}

test("a log directory that cannot be made fails the container", async () => {
  await onNode(async (node, root) => {
    await writeFile(join(root, "logs"), "in the way");
    await assert.rejects(configOf(node), {
      name: "ContainerConfigError",
      message: /^create container log directory for container app failed: /,
    });
  });
});

test("a termination file that cannot be made is logged, and the container runs without", async () => {
  await onNode(async (node, root) => {
    await writeFile(join(root, "pods/u-1/containers"), "in the way");
    const errors: string[] = [];
    const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
    const { mounts } = await configOf({ ...node, log }, { terminationMessagePath: "/t" });
    assert.deepEqual(
      mounts.map(({ containerPath }) => containerPath),
      ["/etc/hosts"],
    );
    assert.deepEqual(errors, ["Error on creating termination-log file"]);
  });
});

test("an aborted wait is no config error", async () => {
  await onNode(async (node) => {
    const abort = new AbortController();
    const readSecret = async (): Promise<never> => {
      abort.abort();
      throw abort.signal.reason;
    };
    const container = exampleContainer({ envFrom: [{ secretRef: { name: "s" } }] });
    await assert.rejects(containerConfig(examplePod(), container, { ...node, readSecret }, abort.signal), {
      name: "AbortError",
    });
  });
});
