import assert from "node:assert/strict";
import { test } from "node:test";
import { exampleContainer, examplePod } from "../../../../test/support/example-context.ts";
import type { IdentifiedPod } from "../../../ground/model/index.ts";
import {
  containerAnnotations,
  containerLabels,
  parseContainerAnnotations,
  sandboxAnnotations,
  sandboxLabels,
} from "./labels.ts";

const pod: IdentifiedPod = {
  ...examplePod({ terminationGracePeriodSeconds: 30 }),
  metadata: {
    name: "web",
    namespace: "shop",
    uid: "u-1",
    labels: { app: "web", "io.kubernetes.pod.name": "lie" },
    annotations: { "kubernetes.io/config.source": "file" },
  },
};

const identity = {
  "io.kubernetes.pod.name": "web",
  "io.kubernetes.pod.namespace": "shop",
  "io.kubernetes.pod.uid": "u-1",
};

test("a sandbox carries the pod's labels, its identity winning, and the pod's annotations", () => {
  assert.deepEqual(sandboxLabels(pod), { app: "web", ...identity });
  assert.deepEqual(sandboxAnnotations(pod), { "kubernetes.io/config.source": "file" });
});

test("a container carries its identity and no labels of the pod", () => {
  assert.deepEqual(containerLabels(pod, exampleContainer()), { ...identity, "io.kubernetes.container.name": "app" });
});

const full = exampleContainer({
  name: "test_container",
  image: "foo/image:v1",
  terminationMessagePath: "/dev/termination-log",
  terminationMessagePolicy: "File",
  lifecycle: { preStop: { exec: { command: ["sh", "-c", "sleep 1"] } } },
  ports: [{ name: "http", containerPort: 80, protocol: "TCP" }],
});

test("annotations of a container with everything", () => {
  const deleted = { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: 5 } };
  assert.deepEqual(containerAnnotations(deleted, full, 3, {}), {
    "io.kubernetes.container.hash": "8e45cbd0",
    "io.kubernetes.container.restartCount": "3",
    "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
    "io.kubernetes.container.terminationMessagePolicy": "File",
    "io.kubernetes.pod.deletionGracePeriod": "5",
    "io.kubernetes.pod.terminationGracePeriod": "30",
    "io.kubernetes.container.preStopHandler": '{"exec":{"command":["sh","-c","sleep 1"]}}',
    "io.kubernetes.container.ports": '[{"name":"http","containerPort":80,"protocol":"TCP"}]',
  });
});

test("annotations of a bare container, with those of a device plugin below ours", () => {
  const ofDevices = { "vendor.com/gpu": "0", "io.kubernetes.container.restartCount": "99" };
  const bare = { ...examplePod(), metadata: pod.metadata };
  assert.deepEqual(containerAnnotations(bare, exampleContainer({ ports: [] }), 0, ofDevices), {
    "vendor.com/gpu": "0",
    "io.kubernetes.container.hash": containerAnnotations(bare, exampleContainer(), 0, {})[
      "io.kubernetes.container.hash"
    ],
    "io.kubernetes.container.restartCount": "0",
    "io.kubernetes.container.terminationMessagePath": "",
    "io.kubernetes.container.terminationMessagePolicy": "",
  });
});

test("what is written can be read back", () => {
  const deleted = { ...pod, metadata: { ...pod.metadata, deletionGracePeriodSeconds: 0 } };
  assert.deepEqual(parseContainerAnnotations(containerAnnotations(deleted, full, 3, {})), {
    hash: "8e45cbd0",
    restartCount: 3,
    terminationMessagePath: "/dev/termination-log",
    terminationMessagePolicy: "File",
    deletionGraceSeconds: 0,
    terminationGraceSeconds: 30,
    preStop: full.lifecycle?.preStop,
    ports: full.ports,
  });
});

test("missing and unreadable annotations count as not set", () => {
  const nothing = {
    hash: "",
    restartCount: 0,
    terminationMessagePath: "",
    terminationMessagePolicy: "",
    deletionGraceSeconds: undefined,
    terminationGraceSeconds: undefined,
    preStop: undefined,
    ports: undefined,
  };
  assert.deepEqual(parseContainerAnnotations({}), nothing);
  assert.deepEqual(
    parseContainerAnnotations({
      "io.kubernetes.container.restartCount": "many",
      "io.kubernetes.pod.deletionGracePeriod": "",
      "io.kubernetes.pod.terminationGracePeriod": "1e3",
      "io.kubernetes.container.preStopHandler": "{",
      "io.kubernetes.container.ports": '{"not":"a list"}',
    }),
    nothing,
  );
  const { preStop, ports } = parseContainerAnnotations({
    "io.kubernetes.container.preStopHandler": "null",
    "io.kubernetes.container.ports": "[null]",
  });
  assert.deepEqual([preStop, ports], [undefined, undefined]);
});
