import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContainer, exampleContext, examplePod } from "../../../../test/support/example-context.ts";
import { NamespaceMode, Protocol, Signal } from "../../../connections/cri/index.ts";
import type { ContainerPort, IdentifiedPod } from "../../../ground/model/index.ts";
import { containerNamespaces, podNamespaces } from "./namespaces.ts";
import { portMappings } from "./ports.ts";
import { stopSignalOf } from "./stop-signal.ts";
import { normalSysctlName, podSysctls } from "./sysctls.ts";
import { userNamespaceOf } from "./user-namespace.ts";

const onNode = { mode: NamespaceMode.NODE, uids: [], gids: [] };

function mapped(...ports: readonly ContainerPort[]): unknown[] {
  const pod = examplePod({
    containers: [exampleContainer({ ports })],
    initContainers: [exampleContainer({ name: "init", ports: [{ containerPort: 1 }] })],
    ephemeralContainers: [{ name: "debug", ports: [{ containerPort: 2 }] }],
  });
  return portMappings(pod).map(({ protocol, hostIp, hostPort, containerPort }) => [
    protocol,
    hostIp,
    hostPort,
    containerPort,
  ]);
}

test("ports of regular containers only, published or not", () => {
  assert.deepEqual(mapped(), []);
  assert.deepEqual(mapped({ containerPort: 80 }, { containerPort: 53, hostPort: 5353, protocol: "UDP" }), [
    [Protocol.TCP, "", 0, 80],
    [Protocol.UDP, "", 5353, 53],
  ]);
});

test("protocols; an unknown one is TCP", () => {
  const protocols = mapped(
    { containerPort: 1, protocol: "TCP" },
    { containerPort: 2, protocol: "UDP" },
    { containerPort: 3, protocol: "SCTP" },
    { containerPort: 4, protocol: "QUIC" },
  ).map((mapping) => (mapping as number[])[0]);
  assert.deepEqual(protocols, [Protocol.TCP, Protocol.UDP, Protocol.SCTP, Protocol.TCP]);
});

test("a repeated port counts once, by name or else by its numbers", () => {
  assert.equal(mapped({ name: "a", containerPort: 1 }, { name: "a", containerPort: 2 }).length, 1);
  assert.equal(mapped({ containerPort: 1, protocol: "TCP" }, { containerPort: 1, protocol: "TCP" }).length, 1);
  assert.equal(mapped({ containerPort: 1, protocol: "TCP" }, { containerPort: 1, protocol: "UDP" }).length, 2);
  assert.equal(mapped({ containerPort: 1, hostPort: 1 }, { containerPort: 1, hostPort: 2 }).length, 2);
  assert.equal(
    mapped(
      { containerPort: 1, hostPort: 1 },
      { containerPort: 1, hostPort: 1, hostIP: "127.0.0.1" },
      { containerPort: 1, hostPort: 1, hostIP: "::1" },
    ).length,
    3,
  );
});

test("two containers may declare the same port", () => {
  const container = exampleContainer({ ports: [{ containerPort: 80 }] });
  assert.equal(portMappings(examplePod({ containers: [container, { ...container, name: "b" }] })).length, 2);
});

for (const [spec, network, ipc, pid] of [
  [{}, "POD", "POD", "CONTAINER"],
  [{ hostNetwork: true }, "NODE", "POD", "CONTAINER"],
  [{ hostIPC: true }, "POD", "NODE", "CONTAINER"],
  [{ hostPID: true }, "POD", "POD", "NODE"],
  [{ shareProcessNamespace: true }, "POD", "POD", "POD"],
  [{ shareProcessNamespace: true, hostPID: true }, "POD", "POD", "NODE"],
  [{ hostNetwork: true, hostIPC: true, hostPID: true }, "NODE", "NODE", "NODE"],
] as const) {
  test(`namespaces of ${JSON.stringify(spec)}`, () => {
    assert.deepEqual(podNamespaces(examplePod(spec), onNode), {
      network: NamespaceMode[network],
      ipc: NamespaceMode[ipc],
      pid: NamespaceMode[pid],
      targetId: "",
      usernsOptions: onNode,
    });
  });
}

function targeting(spec: Partial<IdentifiedPod["spec"]>, ids: Record<string, string>): [number, string] {
  const pod = examplePod({ ephemeralContainers: [{ name: "debug", targetContainerName: "app" }], ...spec });
  const { pid, targetId } = containerNamespaces(
    pod,
    exampleContainer({ name: "debug" }),
    podNamespaces(pod, onNode),
    (name) => ids[name],
  );
  return [pid, targetId];
}

test("an ephemeral container looks into its target's processes", () => {
  assert.deepEqual(targeting({}, { app: "id-1" }), [NamespaceMode.TARGET, "id-1"]);
});

test("unless the processes are shared anyway", () => {
  assert.deepEqual(targeting({ shareProcessNamespace: true }, { app: "id-1" }), [NamespaceMode.POD, ""]);
  assert.deepEqual(targeting({ hostPID: true }, { app: "id-1" }), [NamespaceMode.NODE, ""]);
});

test("without a target it has processes of its own", () => {
  const ephemeralContainers = [{ name: "debug" }];
  assert.deepEqual(targeting({ ephemeralContainers }, {}), [NamespaceMode.CONTAINER, ""]);
});

test("an unknown target is refused", () => {
  assert.throws(() => targeting({}, {}), { name: "ConfigError", message: "unable to find target container app" });
});

test("user namespaces: the node's unless the pod declines them", async () => {
  const context = exampleContext();
  for (const hostUsers of [undefined, true]) {
    assert.deepEqual(await userNamespaceOf(examplePod({ hostUsers }), context), onNode);
  }
});

test("user namespaces: one range for users and groups", async () => {
  const context = exampleContext({
    runtimeHandler: { name: "", recursiveReadOnlyMounts: false, userNamespaces: true },
  });
  const mapping = { hostId: 131_072, containerId: 0, length: 65_536 };
  assert.deepEqual(await userNamespaceOf(examplePod({ hostUsers: false }), context), {
    mode: NamespaceMode.POD,
    uids: [mapping],
    gids: [mapping],
  });
});

for (const [name, message] of [
  ["", "can't set `spec.hostUsers: false`, runtime does not support user namespaces"],
  ["kata", 'can\'t set `spec.hostUsers: false`, RuntimeClass handler "kata" does not support user namespaces'],
] as const) {
  test(`user namespaces: refused by handler "${name}"`, async () => {
    const runtimeHandler = { name, recursiveReadOnlyMounts: false, userNamespaces: false };
    const attempt = userNamespaceOf(examplePod({ hostUsers: false }), exampleContext({ runtimeHandler }));
    await assert.rejects(attempt, { name: "ConfigError", message });
  });
}

for (const [name, normal] of [
  ["kernel.shm_rmid_forced", "kernel.shm_rmid_forced"],
  ["kernel/shm_rmid_forced", "kernel.shm_rmid_forced"],
  ["net/ipv4/conf/eth0.1/x", "net.ipv4.conf.eth0/1.x"],
  ["net.ipv4.conf.eth0/1.x", "net.ipv4.conf.eth0/1.x"],
  ["plain", "plain"],
  ["", ""],
] as const) {
  test(`sysctl ${name} is ${normal}`, () => assert.equal(normalSysctlName(name), normal));
}

test("sysctls of the pod, by their normal names", () => {
  const sysctls = [
    { name: "net/ipv4/tcp_syncookies", value: "1" },
    { name: "kernel.sem", value: "250 32000 32 128" },
  ];
  assert.deepEqual(podSysctls(examplePod({ securityContext: { sysctls } })), {
    "net.ipv4.tcp_syncookies": "1",
    "kernel.sem": "250 32000 32 128",
  });
  assert.deepEqual(podSysctls(examplePod({ securityContext: undefined })), {});
});

for (const [name, signal] of [
  [undefined, Signal.RUNTIME_DEFAULT],
  ["SIGTERM", Signal.SIGTERM],
  ["SIGKILL", Signal.SIGKILL],
  ["SIGUSR1", Signal.SIGUSR1],
  ["SIGRTMIN", Signal.SIGRTMIN],
  ["SIGRTMIN+3", Signal.SIGRTMINPLUS3],
  ["SIGRTMIN+15", Signal.SIGRTMINPLUS15],
  ["SIGRTMAX", Signal.SIGRTMAX],
  ["SIGRTMAX-2", Signal.SIGRTMAXMINUS2],
  ["SIGRTMAX-14", Signal.SIGRTMAXMINUS14],
] as const) {
  test(`stop signal ${name}`, () => {
    assert.equal(stopSignalOf(exampleContainer({ lifecycle: { stopSignal: name } })), signal);
  });
}

test("stop signals are numbered by their place in the list, not as Linux does", () => {
  assert.equal(stopSignalOf(exampleContainer({ lifecycle: { stopSignal: "SIGKILL" } })), 13);
  assert.equal(stopSignalOf(exampleContainer({ lifecycle: { stopSignal: "SIGRTMAX" } })), 65);
});

test("an unknown stop signal is left to the runtime", () => {
  assert.equal(stopSignalOf(exampleContainer({ lifecycle: { stopSignal: "SIGNOPE" } })), Signal.RUNTIME_DEFAULT);
});
