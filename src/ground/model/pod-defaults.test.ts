import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container, EphemeralContainer, Pod, PodSpec, Volume } from "./kube/gen/types.ts";
import { defaultPod } from "./pod-defaults.ts";

function defaulted(spec: Partial<PodSpec>): PodSpec {
  const { spec: result } = defaultPod({ metadata: { name: "p" }, spec: { containers: [], ...spec } });
  assert.ok(result);
  return result;
}

function defaultedContainer(container: Partial<Container>, spec: Partial<PodSpec> = {}): Container {
  const [result] = defaulted({ ...spec, containers: [{ name: "c", image: "i:1", ...container }] }).containers;
  assert.ok(result);
  return result;
}

function defaultedVolume(volume: Partial<Volume>): Volume {
  const [result] = defaulted({ volumes: [{ name: "v", ...volume }] }).volumes ?? [];
  assert.ok(result);
  return result;
}

test("an empty pod gets every pod-level default", () => {
  assert.deepEqual(defaultPod({ metadata: { name: "p" } }), {
    metadata: { name: "p" },
    spec: {
      containers: [],
      restartPolicy: "Always",
      dnsPolicy: "ClusterFirst",
      terminationGracePeriodSeconds: 30,
      schedulerName: "default-scheduler",
      securityContext: {},
      enableServiceLinks: true,
    },
  });
});

test("what is set stays", () => {
  const spec: Partial<PodSpec> = {
    restartPolicy: "Never",
    dnsPolicy: "Default",
    terminationGracePeriodSeconds: 0,
    schedulerName: "mine",
    securityContext: { runAsUser: 1 },
    enableServiceLinks: false,
  };
  assert.deepEqual(defaulted(spec), { ...spec, containers: [] });
});

test("both names of the service account are kept alike", () => {
  for (const spec of [
    { serviceAccount: "a" },
    { serviceAccountName: "a" },
    { serviceAccountName: "a", serviceAccount: "b" },
  ]) {
    const { serviceAccountName, serviceAccount } = defaulted(spec);
    assert.deepEqual([serviceAccountName, serviceAccount], ["a", "a"]);
  }
});

test("the result is deeply frozen and the input untouched", () => {
  const pod: Pod = { spec: { containers: [{ name: "c", ports: [{ containerPort: 1 }] }], hostNetwork: true } };
  const before = structuredClone(pod);
  const result = defaultPod(pod);
  assert.deepEqual(pod, before);
  assert.ok(Object.isFrozen(result.spec?.containers[0]?.ports?.[0]) && Object.isFrozen(result.spec?.securityContext));
});

test("an already defaulted pod does not change", () => {
  const once = defaultPod({
    spec: {
      containers: [
        { name: "c", image: "i", livenessProbe: { httpGet: { port: 1 } }, resources: { limits: { cpu: "1" } } },
      ],
      volumes: [{ name: "v" }],
      resources: { limits: { cpu: "3" } },
    },
  });
  assert.deepEqual(defaultPod(once), once);
});

for (const { image, policy } of [
  { image: "busybox", policy: "Always" },
  { image: "busybox:latest", policy: "Always" },
  { image: "reg.example:5000/busybox", policy: "Always" },
  { image: "reg.example:5000/busybox:latest", policy: "Always" },
  { image: "busybox:1.36", policy: "IfNotPresent" },
  { image: "reg.example:5000/busybox:1.36", policy: "IfNotPresent" },
  { image: `busybox@sha256:${"a".repeat(64)}`, policy: "IfNotPresent" },
  { image: `busybox:latest@sha256:${"a".repeat(64)}`, policy: "Always" },
  { image: "", policy: "IfNotPresent" },
  { image: "NOT valid", policy: "IfNotPresent" },
]) {
  test(`imagePullPolicy of "${image.slice(0, 30)}" is ${policy}`, () => {
    assert.equal(defaultedContainer({ image }).imagePullPolicy, policy);
    assert.equal(defaultedContainer({ image, imagePullPolicy: "Never" }).imagePullPolicy, "Never");
  });
}

for (const { name, given, wanted } of [
  {
    name: "termination message",
    given: {},
    wanted: { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" },
  },
  {
    name: "termination message, empty text",
    given: { terminationMessagePath: "", terminationMessagePolicy: "" },
    wanted: { terminationMessagePath: "/dev/termination-log", terminationMessagePolicy: "File" },
  },
  {
    name: "termination message kept",
    given: { terminationMessagePath: "/x", terminationMessagePolicy: "FallbackToLogsOnError" },
    wanted: { terminationMessagePath: "/x", terminationMessagePolicy: "FallbackToLogsOnError" },
  },
  {
    name: "port protocol",
    given: { ports: [{ containerPort: 1 }, { containerPort: 2, protocol: "UDP" }] },
    wanted: {
      ports: [
        { containerPort: 1, protocol: "TCP" },
        { containerPort: 2, protocol: "UDP" },
      ],
    },
  },
  {
    name: "HTTP probe",
    given: { livenessProbe: { httpGet: { port: 80 } } },
    wanted: {
      livenessProbe: {
        httpGet: { port: 80, path: "/", scheme: "HTTP" },
        timeoutSeconds: 1,
        periodSeconds: 10,
        successThreshold: 1,
        failureThreshold: 3,
      },
    },
  },
  {
    name: "probe numbers of zero count as unset",
    given: { startupProbe: { tcpSocket: { port: 80 }, timeoutSeconds: 0, failureThreshold: 0 } },
    wanted: {
      startupProbe: {
        tcpSocket: { port: 80 },
        timeoutSeconds: 1,
        periodSeconds: 10,
        successThreshold: 1,
        failureThreshold: 3,
      },
    },
  },
  {
    name: "gRPC probe and what is set",
    given: { readinessProbe: { grpc: { port: 1 }, periodSeconds: 2, successThreshold: 4 } },
    wanted: {
      readinessProbe: {
        grpc: { port: 1, service: "" },
        timeoutSeconds: 1,
        periodSeconds: 2,
        successThreshold: 4,
        failureThreshold: 3,
      },
    },
  },
  {
    name: "HTTP hooks",
    given: {
      lifecycle: {
        postStart: { httpGet: { port: 1 } },
        preStop: { httpGet: { port: 2, path: "/x", scheme: "HTTPS" } },
      },
    },
    wanted: {
      lifecycle: {
        postStart: { httpGet: { port: 1, path: "/", scheme: "HTTP" } },
        preStop: { httpGet: { port: 2, path: "/x", scheme: "HTTPS" } },
      },
    },
  },
  {
    name: "fieldRef version",
    given: {
      env: [
        { name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "B", value: "b" },
      ],
    },
    wanted: {
      env: [
        { name: "A", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "metadata.name" } } },
        { name: "B", value: "b" },
      ],
    },
  },
  {
    name: "requests from limits, per resource",
    given: { resources: { limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1" } } },
    wanted: { resources: { limits: { cpu: "2", memory: "1Gi" }, requests: { cpu: "1", memory: "1Gi" } } },
  },
  {
    name: "requests without limits",
    given: { resources: { requests: { cpu: "1" } } },
    wanted: { resources: { requests: { cpu: "1" } } },
  },
  {
    name: "amounts finer than a thousandth are rounded up",
    given: { resources: { limits: { cpu: "1500u", memory: "0.1" } } },
    wanted: { resources: { limits: { cpu: "2m", memory: "0.1" }, requests: { cpu: "2m", memory: "0.1" } } },
  },
] as const) {
  test(`container: ${name}`, () => {
    const result: Readonly<Record<string, unknown>> = { ...defaultedContainer(given as Partial<Container>) };
    for (const [key, value] of Object.entries(wanted)) assert.deepEqual(result[key], value);
  });
}

test("init and ephemeral containers are defaulted too, ephemeral ones without requests", () => {
  const ephemeral: EphemeralContainer = { name: "e", image: "i", resources: { limits: { cpu: "1" } } };
  const spec = defaulted({
    initContainers: [{ name: "i", image: "i", resources: { limits: { cpu: "1" } } }],
    ephemeralContainers: [ephemeral],
  });
  assert.deepEqual(spec.initContainers?.[0]?.resources, { limits: { cpu: "1" }, requests: { cpu: "1" } });
  assert.equal(spec.initContainers?.[0]?.imagePullPolicy, "Always");
  assert.deepEqual(spec.ephemeralContainers?.[0]?.resources, { limits: { cpu: "1" } });
  assert.equal(spec.ephemeralContainers?.[0]?.terminationMessagePolicy, "File");
});

test("on the host's network a port is its own host port", () => {
  const ports = [{ containerPort: 80 }, { containerPort: 81, hostPort: 8081 }];
  const hosted = defaulted({
    hostNetwork: true,
    containers: [{ name: "c", ports }],
    initContainers: [{ name: "i", ports }],
  });
  for (const container of [hosted.containers[0], hosted.initContainers?.[0]]) {
    assert.deepEqual(
      container?.ports?.map(({ hostPort }) => hostPort),
      [80, 8081],
    );
  }
  assert.equal(defaultedContainer({ ports }).ports?.[0]?.hostPort, undefined);
});

for (const { name, given, wanted } of [
  { name: "no source", given: {}, wanted: { emptyDir: {} } },
  { name: "emptyDir", given: { emptyDir: { medium: "Memory" } }, wanted: { emptyDir: { medium: "Memory" } } },
  { name: "hostPath", given: { hostPath: { path: "/x" } }, wanted: { hostPath: { path: "/x", type: "" } } },
  {
    name: "hostPath with a type",
    given: { hostPath: { path: "/x", type: "File" } },
    wanted: { hostPath: { path: "/x", type: "File" } },
  },
  { name: "configMap", given: { configMap: { name: "m" } }, wanted: { configMap: { name: "m", defaultMode: 0o644 } } },
  { name: "secret", given: { secret: { defaultMode: 0 } }, wanted: { secret: { defaultMode: 0 } } },
  {
    name: "secret mode",
    given: { secret: { secretName: "s" } },
    wanted: { secret: { secretName: "s", defaultMode: 0o644 } },
  },
  {
    name: "downwardAPI",
    given: { downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "metadata.name" } }] } },
    wanted: {
      downwardAPI: {
        defaultMode: 0o644,
        items: [{ path: "p", fieldRef: { fieldPath: "metadata.name", apiVersion: "v1" } }],
      },
    },
  },
  {
    name: "projected",
    given: {
      projected: {
        sources: [
          { serviceAccountToken: { path: "t" } },
          { downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "metadata.uid" } }] } },
          { configMap: { name: "m" } },
        ],
      },
    },
    wanted: {
      projected: {
        defaultMode: 0o644,
        sources: [
          { serviceAccountToken: { path: "t", expirationSeconds: 3600 } },
          { downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "metadata.uid", apiVersion: "v1" } }] } },
          { configMap: { name: "m" } },
        ],
      },
    },
  },
  {
    name: "image",
    given: { image: { reference: "r:1" } },
    wanted: { image: { reference: "r:1", pullPolicy: "IfNotPresent" } },
  },
  {
    name: "iscsi",
    given: { iscsi: { targetPortal: "p", iqn: "q", lun: 0 } },
    wanted: { iscsi: { targetPortal: "p", iqn: "q", lun: 0, iscsiInterface: "default" } },
  },
  {
    name: "rbd",
    given: { rbd: { monitors: ["m"], image: "i" } },
    wanted: { rbd: { monitors: ["m"], image: "i", pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" } },
  },
  {
    name: "azureDisk",
    given: { azureDisk: { diskName: "d", diskURI: "u" } },
    wanted: {
      azureDisk: {
        diskName: "d",
        diskURI: "u",
        cachingMode: "ReadWrite",
        fsType: "ext4",
        readOnly: false,
        kind: "Shared",
      },
    },
  },
  {
    name: "scaleIO",
    given: { scaleIO: { gateway: "g", system: "s", secretRef: { name: "n" } } },
    wanted: {
      scaleIO: { gateway: "g", system: "s", secretRef: { name: "n" }, storageMode: "ThinProvisioned", fsType: "xfs" },
    },
  },
  {
    name: "ephemeral claim",
    given: { ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"] } } } },
    wanted: {
      ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], volumeMode: "Filesystem" } } },
    },
  },
] as const) {
  test(`volume: ${name}`, () => {
    assert.deepEqual(defaultedVolume(given as Partial<Volume>), { name: "v", ...wanted });
  });
}

const claims = (cpu: string, hugePages: string): Container => ({
  name: "c",
  resources: {
    limits: { "hugepages-2Mi": hugePages, memory: "1Gi" },
    requests: { cpu, memory: "512Mi", "hugepages-2Mi": hugePages },
  },
});

for (const { name, resources, wanted } of [
  { name: "nothing set", resources: {}, wanted: {} },
  {
    name: "limits: requests come from the containers, then from the limits",
    resources: { limits: { cpu: "3", memory: "4Gi" } },
    wanted: {
      limits: { cpu: "3", memory: "4Gi", "hugepages-2Mi": "6Mi" },
      requests: { cpu: "1500m", memory: "1Gi", "hugepages-2Mi": "6Mi" },
    },
  },
  {
    name: "requests given stay",
    resources: { limits: { cpu: "3" }, requests: { cpu: "2" } },
    wanted: {
      limits: { cpu: "3", "hugepages-2Mi": "6Mi" },
      requests: { cpu: "2", memory: "1Gi", "hugepages-2Mi": "6Mi" },
    },
  },
] as const) {
  test(`pod-level resources: ${name}`, () => {
    const { resources: result } = defaulted({ resources, containers: [claims("1", "2Mi"), claims("500m", "4Mi")] });
    assert.deepEqual(result, wanted);
  });
}
