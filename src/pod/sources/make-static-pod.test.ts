import assert from "node:assert/strict";
import { test } from "node:test";
import { describeProblem, type Pod } from "../../ground/model/index.ts";
import { type ManifestOrigin, makeStaticPod, type StaticPodSettings } from "./make-static-pod.ts";

const settings: StaticPodSettings = { nodeName: "Node-1", references: { prevent: true, allow: [] } };
const file: ManifestOrigin = { source: "file", path: "/etc/pods/web.yaml" };
const http: ManifestOrigin = { source: "http", url: "http://127.0.0.1/pods" };
const web: Pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web" },
  spec: { containers: [{ name: "c", image: "i:1" }] },
};
// A node name in capitals is no valid spec.nodeName; only its effect on the pod's name is looked at.
const lower: StaticPodSettings = { ...settings, nodeName: "node-1" };

function made(pod: Pod, origin: ManifestOrigin, by: StaticPodSettings = lower) {
  const { pod: result, problems } = makeStaticPod(pod, origin, by);
  assert.deepEqual(problems.map(describeProblem), []);
  assert.ok(result);
  return result;
}

for (const uid of ["..", ".", "../../etc", "a/b", "-x", "a\0b", "x".repeat(129)]) {
  test(`uid ${JSON.stringify(uid.slice(0, 9))} is refused: directories are named after it`, () => {
    const { pod, problems } = makeStaticPod({ ...web, metadata: { name: "web", uid } }, file, lower);
    assert.equal(pod, undefined);
    assert.match(problems.map(describeProblem).join(), /metadata\.uid/);
  });
}

test("a file's pod gets name, namespace, node, hash, toleration and phase", () => {
  const pod = made(web, file);
  const { uid } = pod.metadata;
  assert.match(uid, /^[0-9a-f]{32}$/);
  assert.deepEqual(pod.metadata, {
    name: "web-node-1",
    namespace: "default",
    uid,
    annotations: { "kubernetes.io/config.hash": uid },
  });
  assert.equal(pod.spec.nodeName, "node-1");
  assert.deepEqual(pod.spec.tolerations, [{ operator: "Exists", effect: "NoExecute" }]);
  assert.deepEqual(pod.status, { phase: "Pending" });
  assert.equal(pod.spec.restartPolicy, "Always", "defaults are filled in");
  assert.ok(Object.isFrozen(pod) && Object.isFrozen(pod.metadata.annotations) && Object.isFrozen(pod.spec.tolerations));
});

test("a URL's pod gets no toleration", () => assert.equal(made(web, http).spec.tolerations, undefined));

test("what the manifest sets stays: uid, namespace, annotations, status", () => {
  const pod = made(
    {
      ...web,
      metadata: { name: "web", uid: "mine", namespace: "kube-system", annotations: { a: "b" } },
      status: { message: "m", phase: "Running" },
    },
    file,
  );
  assert.deepEqual(pod.metadata, {
    name: "web-node-1",
    namespace: "kube-system",
    uid: "mine",
    annotations: { a: "b", "kubernetes.io/config.hash": "mine" },
  });
  assert.deepEqual(pod.status, { message: "m", phase: "Pending" });
});

test("the node's name is put behind the pod's in lower case", () => {
  const { problems } = makeStaticPod(web, file, settings);
  assert.match(problems.map(describeProblem).join(), /^spec.nodeName: Invalid value: "Node-1"/, "the pod name is fine");
});

for (const { name, tolerations, wanted } of [
  {
    name: "added behind others",
    tolerations: [{ key: "a", operator: "Exists", effect: "NoExecute" }],
    wanted: [
      { key: "a", operator: "Exists", effect: "NoExecute" },
      { operator: "Exists", effect: "NoExecute" },
    ],
  },
  {
    name: "already there",
    tolerations: [{ operator: "Exists", effect: "NoExecute" }],
    wanted: [{ operator: "Exists", effect: "NoExecute" }],
  },
  {
    name: "a limited one is made unlimited",
    tolerations: [{ operator: "Exists", effect: "NoExecute", tolerationSeconds: 5 }],
    wanted: [{ operator: "Exists", effect: "NoExecute" }],
  },
  {
    name: "another effect does not count",
    tolerations: [{ operator: "Exists", effect: "NoSchedule" }],
    wanted: [
      { operator: "Exists", effect: "NoSchedule" },
      { operator: "Exists", effect: "NoExecute" },
    ],
  },
]) {
  test(`toleration: ${name}`, () => {
    const pod = made({ ...web, spec: { containers: [{ name: "c", image: "i:1" }], tolerations } }, file);
    assert.deepEqual(pod.spec.tolerations, wanted);
  });
}

test("the uid changes with content, node and place, and with nothing else", () => {
  const uid = made(web, file).metadata.uid;
  const reordered: Pod = {
    spec: { containers: [{ image: "i:1", name: "c" }] },
    metadata: { name: "web" },
    kind: "Pod",
    apiVersion: "v1",
  };
  assert.equal(made(reordered, file).metadata.uid, uid, "the order of keys");
  const spelledOut: Pod = {
    ...web,
    spec: { containers: [{ name: "c", image: "i:1", imagePullPolicy: "IfNotPresent" }], dnsPolicy: "ClusterFirst" },
  };
  assert.equal(made(spelledOut, file).metadata.uid, uid, "defaults spelled out");
  const others = [
    made({ ...web, spec: { containers: [{ name: "c", image: "i:2" }] } }, file),
    made({ ...web, metadata: { name: "web", labels: { a: "b" } } }, file),
    made(web, file, { ...lower, nodeName: "node-2" }),
    made(web, { source: "file", path: "/etc/pods/web2.yaml" }),
    made(web, http),
    made(web, { source: "http", url: "http://127.0.0.1/other" }),
  ].map(({ metadata }) => metadata.uid);
  assert.equal(new Set([uid, ...others]).size, 7);
  assert.equal(made(web, http, { ...lower, nodeName: "node-2" }).metadata.uid, made(web, http).metadata.uid);
  assert.equal(uid, "2fdfc6e3757b5d5381c564ecd221348d", "a new version of the agent must not restart every static pod");
});

test("a pod without a name is refused before anything else", () => {
  const { pod, problems } = makeStaticPod({ metadata: { generateName: "x-" }, spec: { containers: [] } }, file, lower);
  assert.equal(pod, undefined);
  assert.deepEqual(problems.map(describeProblem), ["metadata.name: Required value: name is needed for the pod"]);
});

test("every problem is named, those of validation and the reference to the API", () => {
  const { pod, problems } = makeStaticPod(
    { metadata: { name: "web" }, spec: { containers: [{ name: "c" }], serviceAccountName: "default" } },
    file,
    lower,
  );
  assert.equal(pod, undefined);
  assert.deepEqual(problems.map(describeProblem), [
    "spec.containers[0].image: Required value",
    "spec.serviceAccountName: static pods may not reference serviceaccounts",
  ]);
});
