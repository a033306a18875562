import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ContainerState,
  ContainerStatus,
  NamespaceMode,
  PodSandboxState,
  PodSandboxStatus,
} from "../../connections/cri/index.ts";
import type { SandboxId } from "../../ground/model/index.ts";
import { translateContainer, translateContainerState, translateSandbox, translateSandboxState } from "./translate.ts";

const sandboxId = "s1" as SandboxId;

test("a running sandbox with two addresses", () => {
  const status = PodSandboxStatus.fromPartial({
    id: "s1",
    metadata: { name: "web", namespace: "shop", uid: "u1", attempt: 3 },
    state: PodSandboxState.SANDBOX_READY,
    createdAt: 1_700_000_000_123_456_789n,
    network: { ip: "10.1.0.2", additionalIps: [{ ip: "fd00::2" }] },
    linux: { namespaces: { options: { network: NamespaceMode.POD } } },
    runtimeHandler: "kata",
  });
  assert.deepEqual(translateSandbox(status), {
    id: "s1",
    attempt: 3,
    state: "ready",
    createdAt: 1_700_000_000_123,
    network: "pod",
    ip: "10.1.0.2",
    additionalIps: ["fd00::2"],
    runtimeHandler: "kata",
    podSource: undefined,
  });
});

test("a sandbox without a network status has no ip at all, one with an empty status has an empty ip", () => {
  assert.equal(translateSandbox(PodSandboxStatus.fromPartial({ id: "s" })).ip, undefined);
  assert.equal(translateSandbox(PodSandboxStatus.fromPartial({ id: "s", network: {} })).ip, "");
});

test("a sandbox on the node's network", () => {
  const status = PodSandboxStatus.fromPartial({
    id: "s1",
    state: PodSandboxState.SANDBOX_NOTREADY,
    linux: { namespaces: { options: { network: NamespaceMode.NODE } } },
  });
  const { network, state } = translateSandbox(status);
  assert.deepEqual({ network, state }, { network: "node", state: "notReady" });
});

test("an exited container with everything a new runtime reports", () => {
  const status = ContainerStatus.fromPartial({
    id: "c1",
    metadata: { name: "app", attempt: 2 },
    state: ContainerState.CONTAINER_EXITED,
    createdAt: 1_000_000_000n,
    startedAt: 2_000_000_999_999n,
    finishedAt: 3_000_000_000_000n,
    exitCode: 137,
    reason: "OOMKilled",
    message: "out of memory",
    image: { image: "docker.io/library/app:1" },
    imageRef: "docker.io/library/app@sha256:aa",
    imageId: "sha256:bb",
    logPath: "/var/log/pods/x/app/2.log",
    annotations: { "io.kubernetes.container.hash": "8e45cbd0", "io.kubernetes.container.restartCount": "2" },
    mounts: [{ containerPath: "/dev/termination-log", hostPath: "/root/pods/u/containers/app/01ab23cd" }],
    resources: { linux: { cpuShares: 512n, cpuQuota: -1n, cpuPeriod: 100_000n, memoryLimitInBytes: 1n << 40n } },
    user: { linux: { uid: 1000n, gid: 2000n, supplementalGroups: [1n, 2n] } },
  });
  const { annotations, ...rest } = translateContainer(status, sandboxId);
  assert.deepEqual(rest, {
    id: "c1",
    sandboxId: "s1",
    name: "app",
    attempt: 2,
    state: "exited",
    createdAt: 1000,
    startedAt: 2_000_000,
    finishedAt: 3_000_000,
    exitCode: 137,
    reason: "OOMKilled",
    message: "out of memory",
    image: "docker.io/library/app:1",
    imageRef: "docker.io/library/app@sha256:aa",
    imageId: "sha256:bb",
    logPath: "/var/log/pods/x/app/2.log",
    mounts: [{ containerPath: "/dev/termination-log", hostPath: "/root/pods/u/containers/app/01ab23cd" }],
    resources: { cpuShares: 512, cpuQuota: -1, cpuPeriod: 100_000, memoryLimitBytes: 1n << 40n },
    user: { uid: 1000, gid: 2000, supplementalGroups: [1, 2] },
  });
  assert.equal(annotations.hash, "8e45cbd0");
  assert.equal(annotations.restartCount, 2);
});

test("an old runtime's container: the image reference stands in for its id, nothing else is made up", () => {
  const status = ContainerStatus.fromPartial({ id: "c1", metadata: { name: "app" }, imageRef: "sha256:cc" });
  const { imageId, resources, user, startedAt, finishedAt } = translateContainer(status, sandboxId);
  assert.deepEqual(
    { imageId, resources, user, startedAt, finishedAt },
    { imageId: "sha256:cc", resources: undefined, user: undefined, startedAt: 0, finishedAt: 0 },
  );
});

test("Go's zero time is no time", () => {
  const status = ContainerStatus.fromPartial({ id: "c1", finishedAt: -6_795_364_578_871_345_152n });
  assert.equal(translateContainer(status, sandboxId).finishedAt, 0);
});

test("states, unknown ones included", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 9].map((state) => translateContainerState(state as ContainerState)),
    ["created", "running", "exited", "unknown", "unknown"],
  );
  assert.deepEqual(
    [0, 1, 9].map((state) => translateSandboxState(state as PodSandboxState)),
    ["ready", "notReady", "notReady"],
  );
});
