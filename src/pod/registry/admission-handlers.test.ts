import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer, testPod } from "../../../test/support/pods.ts";
import { leastProcessorTime } from "../../../test/support/processor-time.ts";
import type { IdentifiedPod } from "../../ground/model/index.ts";
import { Admission, type AdmissionHandler } from "./admission.ts";
import { appArmorHandler, groupsPolicyHandler, osHandler, podLevelHandler } from "./admission-handlers.ts";
import { hostPortsHandler } from "./admission-host-ports.ts";
import { sysctlHandler } from "./admission-sysctls.ts";

const sysctl = sysctlHandler({
  allowedUnsafe: ["net.core.*", "kernel.msgmax"],
  kernelVersion: "4.5.0-generic",
  normalName: (name) => name,
});
const withSysctl = (name: string, spec: object = {}): IdentifiedPod =>
  testPod({ securityContext: { sysctls: [{ name, value: "1" }] }, ...spec });
const whole = testPod({ resources: { requests: { cpu: "1" } } });
const confined = testPod({ securityContext: { appArmorProfile: { type: "RuntimeDefault" } } });
const byPort = (hostPort: number, name: string, hostIP?: string): IdentifiedPod =>
  testPod(
    {
      containers: [testContainer("main", { ports: [{ containerPort: 80, hostPort, ...(hostIP ? { hostIP } : {}) }] })],
    },
    { name, uid: name },
  );

const inNamespace = (pod: IdentifiedPod, namespace: string, uid: string): IdentifiedPod => ({
  ...pod,
  metadata: { ...pod.metadata, namespace, uid },
});
const staticByPort = (hostPort: number, uid: string, namespace: string): IdentifiedPod => {
  const pod = inNamespace(byPort(hostPort, "web"), namespace, uid);
  return { ...pod, metadata: { ...pod.metadata, annotations: { "kubernetes.io/config.source": "file" } } };
};
const portTaken = "NodePorts: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";

for (const [name, handler, pod, others, wanted] of [
  ["resources as a whole", podLevelHandler(true), whole, [], "admitted"],
  ["resources as a whole, empty", podLevelHandler(false), testPod({ resources: { requests: {} } }), [], "admitted"],
  [
    "resources as a whole, switched off",
    podLevelHandler(false),
    whole,
    [],
    "PodLevelResourcesNotSupported: PodLevelResources feature gate is disabled",
  ],
  ["safe sysctl", sysctl, withSysctl("net.ipv4.tcp_syncookies"), [], "admitted"],
  ["safe from this kernel on", sysctl, withSysctl("net.ipv4.tcp_keepalive_time"), [], "admitted"],
  [
    "safe only with a later kernel",
    sysctl,
    withSysctl("net.ipv4.tcp_rmem"),
    [],
    'SysctlForbidden: forbidden sysctl: "net.ipv4.tcp_rmem" not allowlisted',
  ],
  ["allowed by pattern", sysctl, withSysctl("net.core.somaxconn"), [], "admitted"],
  [
    "unknown",
    sysctl,
    withSysctl("kernel.panic"),
    [],
    'SysctlForbidden: forbidden sysctl: "kernel.panic" not allowlisted',
  ],
  [
    "of the host's network",
    sysctl,
    withSysctl("net.ipv4.tcp_syncookies", { hostNetwork: true }),
    [],
    'SysctlForbidden: forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled',
  ],
  [
    "of the host's ipc",
    sysctl,
    withSysctl("kernel.msgmax", { hostIPC: true }),
    [],
    'SysctlForbidden: forbidden sysctl: "kernel.msgmax" not allowed with host IPC enabled',
  ],
  ["AppArmor there", appArmorHandler(true), confined, [], "admitted"],
  [
    "AppArmor missing",
    appArmorHandler(false),
    confined,
    [],
    "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host",
  ],
  [
    "AppArmor missing, wanted by annotation",
    appArmorHandler(false),
    testPod({}, { annotations: { "container.apparmor.security.beta.kubernetes.io/main": "runtime/default" } }),
    [],
    "AppArmor: Cannot enforce AppArmor: AppArmor is not enabled on the host",
  ],
  [
    "AppArmor missing, unconfined",
    appArmorHandler(false),
    testPod({ securityContext: { appArmorProfile: { type: "Unconfined" } } }),
    [],
    "admitted",
  ],
  ["linux", osHandler, testPod({ os: { name: "linux" } }), [], "admitted"],
  [
    "windows",
    osHandler,
    testPod({ os: { name: "windows" } }),
    [],
    "PodOSNotSupported: Failed to admit pod as the OS field doesn't match node OS",
  ],
  [
    "strict groups unsupported",
    groupsPolicyHandler(() => false),
    testPod({ securityContext: { supplementalGroupsPolicy: "Strict" } }),
    [],
    "SupplementalGroupsPolicyNotSupported: SupplementalGroupsPolicy=Strict is not supported in this node",
  ],
  [
    "strict groups supported",
    groupsPolicyHandler(() => true),
    testPod({ securityContext: { supplementalGroupsPolicy: "Strict" } }),
    [],
    "admitted",
  ],
  ["host port free", hostPortsHandler, byPort(80, "a"), [byPort(81, "b")], "admitted"],
  ["host port taken", hostPortsHandler, byPort(80, "a"), [byPort(80, "b")], portTaken],
  [
    "host port on another address",
    hostPortsHandler,
    byPort(80, "a", "127.0.0.1"),
    [byPort(80, "b", "127.0.0.2")],
    "admitted",
  ],
  [
    "host port of its own earlier version",
    hostPortsHandler,
    staticByPort(80, "new", "default"),
    [staticByPort(80, "old", "default")],
    "admitted",
  ],
  [
    "host port taken by a pod of the same name in another namespace",
    hostPortsHandler,
    inNamespace(byPort(80, "web"), "prod", "1"),
    [inNamespace(byPort(80, "web"), "other", "2")],
    portTaken,
  ],
  [
    "host port taken by a static pod of the same name in another namespace",
    hostPortsHandler,
    staticByPort(80, "new", "prod"),
    [staticByPort(80, "old", "other")],
    portTaken,
  ],
  [
    "host port still held by a deleted pod of the same name",
    hostPortsHandler,
    inNamespace(byPort(80, "web"), "prod", "1"),
    [inNamespace(byPort(80, "web"), "prod", "2")],
    portTaken,
  ],
  ["host port of the very same pod", hostPortsHandler, byPort(80, "a"), [byPort(80, "a")], "admitted"],
  [
    "strict groups before the runtime has said what it can do",
    groupsPolicyHandler(() => undefined),
    testPod({ securityContext: { supplementalGroupsPolicy: "Strict" } }),
    [],
    "undecided",
  ],
] as const satisfies readonly (readonly [
  string,
  AdmissionHandler,
  IdentifiedPod,
  readonly IdentifiedPod[],
  string,
])[]) {
  test(name, () => {
    const verdict = new Admission({ handler }).admit(pod, others);
    assert.equal(verdict.type === "rejected" ? `${verdict.reason}: ${verdict.message}` : verdict.type, wanted);
  });
}

test("host ports in very large numbers cost no more than their number", async () => {
  const byPorts = (count: number, hostIP: string, uid: string): IdentifiedPod => {
    const ports = Array.from({ length: count }, (_, index) => ({ containerPort: 80, hostPort: index + 1, hostIP }));
    return testPod({ containers: [testContainer("main", { ports })] }, { name: uid, uid });
  };
  const cost = (count: number): Promise<number> => {
    const [pod, other] = [byPorts(count, "127.0.0.1", "a"), byPorts(count, "127.0.0.2", "b")];
    return leastProcessorTime(() => assert.equal(hostPortsHandler(pod, [other]).type, "admitted"));
  };
  const [small, large] = [await cost(3_000), await cost(48_000)];
  assert.ok(large < 100 * Math.max(small, 1_000), `${small} us for 3,000 ports, ${large} us for 48,000`);
});
