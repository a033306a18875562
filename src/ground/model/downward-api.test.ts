import assert from "node:assert/strict";
import { test } from "node:test";
import { DownwardApiError, formatMap, podField, resourceField } from "./downward-api.ts";
import type { Container } from "./kube/gen/types.ts";
import type { IdentifiedPod } from "./pod.ts";
import { amountsOf } from "./resource-list.ts";

const pod: IdentifiedPod = {
  metadata: {
    name: "web",
    namespace: "shop",
    uid: "u-1",
    labels: { tier: "front", app: "web", "example.com/x": "y" },
    annotations: { note: 'say "hi"\n', "a[b]c": "odd" },
  },
  spec: { containers: [], nodeName: "node-1", serviceAccountName: "robot" },
};
const facts = { podIps: ["10.1.0.2", "fd00::2"], hostIps: ["10.0.0.1", "fd00::1"] };

for (const [path, value] of [
  ["metadata.name", "web"],
  ["metadata.namespace", "shop"],
  ["metadata.uid", "u-1"],
  ["metadata.labels['app']", "web"],
  ["metadata.labels['example.com/x']", "y"],
  ["metadata.labels['missing']", ""],
  ["metadata.annotations['note']", 'say "hi"\n'],
  ["metadata.annotations['a[b]c']", "odd"],
  ["metadata.annotations['missing']", ""],
  ["metadata.annotations['constructor']", ""],
  ["metadata.labels['__proto__']", ""],
  ["metadata.labels", 'app="web"\nexample.com/x="y"\ntier="front"'],
  ["metadata.annotations", 'a[b]c="odd"\nnote="say \\"hi\\"\\n"'],
  ["spec.nodeName", "node-1"],
  ["spec.serviceAccountName", "robot"],
  ["status.hostIP", "10.0.0.1"],
  ["status.hostIPs", "10.0.0.1,fd00::1"],
  ["status.podIP", "10.1.0.2"],
  ["status.podIPs", "10.1.0.2,fd00::2"],
] as const) {
  test(`fieldRef ${path}`, () => assert.equal(podField(pod, path, facts), value));
}

for (const [path, message] of [
  ["status.phase", "unsupported fieldPath: status.phase"],
  ["spec", "unsupported fieldPath: spec"],
  ["", "unsupported fieldPath: "],
  ["metadata.labels['", "unsupported fieldPath: metadata.labels['"],
  ["metadata.labels[']", "unsupported fieldPath: metadata.labels[']"],
  ["['app']", "unsupported fieldPath: ['app']"],
  ["spec.nodeName['x']", `fieldPath "spec.nodeName['x']" does not support subscript`],
] as const) {
  test(`fieldRef ${JSON.stringify(path)} is refused`, () =>
    assert.throws(
      () => podField(pod, path, facts),
      (error) => error instanceof DownwardApiError && error.message === message,
    ));
}

test("a path of very many brackets is refused at once", () => {
  // The square of this length takes hours.
  const path = "['".repeat(500_000);
  assert.throws(() => podField(pod, path, facts), { name: "DownwardApiError" });
});

test("fields without a value are empty texts", () => {
  const bare: IdentifiedPod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { containers: [] } };
  const none = { podIps: [], hostIps: [] };
  for (const path of ["metadata.labels", "metadata.annotations", "spec.nodeName", "status.podIP"]) {
    assert.equal(podField(bare, path, none), "", path);
  }
});

test("the node's addresses are not handed on before they are known", () => {
  const bare: IdentifiedPod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { containers: [] } };
  for (const path of ["status.hostIP", "status.hostIPs"]) {
    assert.throws(() => podField(bare, path, { podIps: [], hostIps: [] }), /not known yet/);
  }
});

test("maps are sorted by their bytes", () => {
  assert.equal(formatMap({ b: "2", B: "1", a: "3" }), 'B="1"\na="3"\nb="2"');
});

const limited: Container = {
  name: "limited",
  resources: {
    limits: { cpu: "1500m", memory: "1Gi", "ephemeral-storage": "2Gi", "hugepages-2Mi": "4Mi" },
    requests: { cpu: "250m", memory: "100M", "hugepages-2Mi": "4Mi" },
  },
};
const unlimited: Container = { name: "unlimited" };
const withContainers: IdentifiedPod = {
  ...pod,
  spec: { ...pod.spec, containers: [limited, unlimited], initContainers: [{ name: "init" }] },
};
const allocatable = amountsOf({ cpu: "3500m", memory: "8Gi", "ephemeral-storage": "50Gi" });

for (const [container, resource, divisor, value] of [
  [limited, "limits.cpu", undefined, "2"],
  [limited, "limits.cpu", "0", "2"],
  [limited, "limits.cpu", "1", "2"],
  [limited, "limits.cpu", "1m", "1500"],
  [limited, "requests.cpu", undefined, "1"],
  [limited, "requests.cpu", "1m", "250"],
  [limited, "requests.cpu", "100m", "3"],
  [limited, "limits.memory", undefined, "1073741824"],
  [limited, "limits.memory", "1Mi", "1024"],
  [limited, "requests.memory", "1Mi", "96"],
  [limited, "limits.ephemeral-storage", "1Gi", "2"],
  [limited, "requests.ephemeral-storage", undefined, "0"],
  [limited, "limits.hugepages-2Mi", "1Mi", "4"],
  [limited, "requests.hugepages-2Mi", undefined, "4194304"],
  [limited, "limits.hugepages-1Gi", undefined, "0"],
  [unlimited, "limits.cpu", undefined, "4"],
  [unlimited, "limits.cpu", "1m", "3500"],
  [unlimited, "limits.memory", "1Gi", "8"],
  [unlimited, "limits.ephemeral-storage", "1Gi", "50"],
  [unlimited, "requests.cpu", undefined, "0"],
  [unlimited, "requests.memory", undefined, "0"],
  [unlimited, "limits.hugepages-2Mi", undefined, "0"],
] as const) {
  test(`${container.name}: ${resource} by ${divisor ?? "default"} is ${value}`, () =>
    assert.equal(resourceField(withContainers, { resource, divisor }, container, allocatable), value));
}

test("another container is chosen by name, init containers included", () => {
  const value = (containerName: string): string =>
    resourceField(withContainers, { resource: "limits.cpu", divisor: "1m", containerName }, unlimited, allocatable);
  assert.equal(value("limited"), "1500");
  assert.equal(value("init"), "3500");
  assert.throws(() => value("nobody"), { name: "DownwardApiError", message: "container nobody not found" });
});

test("a pod-level limit stands before what the node can give", () => {
  const limitedPod = { ...withContainers, spec: { ...withContainers.spec, resources: { limits: { cpu: "2" } } } };
  const value = (resource: string): string => resourceField(limitedPod, { resource }, unlimited, allocatable);
  assert.equal(value("limits.cpu"), "2");
  assert.equal(value("limits.memory"), "8589934592");
});

for (const resource of ["limits.example.com/gpu", "cpu", "limits.", "status.cpu"]) {
  test(`${resource} is no resource to hand down`, () =>
    assert.throws(() => resourceField(withContainers, { resource }, limited, allocatable), {
      name: "DownwardApiError",
      message: `unsupported container resource : ${resource}`,
    }));
}
