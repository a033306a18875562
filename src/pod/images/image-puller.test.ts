import assert from "node:assert/strict";
import { test } from "node:test";
import { at, image, Node, podOf } from "../../../test/support/pulling-node.ts";
import { CriError, type ImageContent } from "../../connections/cri/index.ts";
import { imageOf } from "./image-puller.ts";
import { PullSecretError } from "./pull-credentials.ts";

for (const { policy, present, pulls, event } of [
  { policy: "Always", present: true, pulls: 1, event: "pulled" },
  { policy: "Always", present: false, pulls: 1, event: "pulled" },
  { policy: "IfNotPresent", present: true, pulls: 0, event: "present" },
  { policy: "IfNotPresent", present: false, pulls: 1, event: "pulled" },
  { policy: "Never", present: true, pulls: 0, event: "present" },
] as const) {
  test(`policy ${policy}, image ${present ? "present" : "absent"}`, async () => {
    const node = new Node();
    node.service.registry.set(image, { id: "sha256:app", size: 4_242n, uid: 1_000n });
    if (present) node.service.preload(image, { id: "sha256:app", size: 4_242n, uid: { value: 1_000n } });
    const ensured = await node.ensure({ pullPolicy: policy });
    assert.equal(ensured.imageRef, "sha256:app");
    assert.equal(ensured.image.uid?.value, 1_000n);
    assert.equal(node.service.pulls.length, pulls);
    assert.deepEqual(node.used, ["sha256:app"]);
    assert.deepEqual(
      node.events,
      event === "present"
        ? [`${at} Normal Pulled Container image "reg.io/app:1" already present on machine`]
        : [
            `${at} Normal Pulling Pulling image "reg.io/app:1"`,
            `${at} Normal Pulled Successfully pulled image "reg.io/app:1" in 0s (0s including waiting). Image size: 4242 bytes.`,
          ],
    );
  });
}

test("policy Never, image absent", async () => {
  const node = new Node();
  const error = await node.refusal({ pullPolicy: "Never" });
  const message = 'Container image "reg.io/app:1" is not present with pull policy of Never';
  assert.deepEqual([error.reason, error.message], ["ErrImageNeverPull", message]);
  assert.deepEqual(node.events, [
    `${at} Warning ErrImageNeverPull ${message}`,
    `${at} Warning Failed Error: ErrImageNeverPull`,
  ]);
});

test("an impossible name", async () => {
  const node = new Node();
  const error = await node.refusal({ image: "NOT/valid:" });
  const message =
    'Failed to apply default image tag "NOT/valid:": couldn\'t parse image name "NOT/valid:": invalid reference format';
  assert.deepEqual([error.reason, error.message], ["InvalidImageName", message]);
  assert.deepEqual(node.events, [
    `${at} Warning InspectFailed ${message}`,
    `${at} Warning Failed Error: InvalidImageName`,
  ]);
});

test("with the policy Always a failure to pull is told as such, whatever the runtime knows of the image", async () => {
  const node = new Node();
  node.service.broken.status = new CriError("Unavailable", "imageStatus", "connection refused");
  assert.equal((await node.refusal({ pullPolicy: "Always" })).reason, "ErrImagePull");
});

test("a runtime that cannot say whether the image is there", async () => {
  const node = new Node();
  node.service.broken.status = new CriError("Unavailable", "imageStatus", "connection refused");
  const error = await node.refusal();
  const message = 'Failed to inspect image "": rpc error: code = Unavailable desc = connection refused';
  assert.deepEqual([error.reason, error.message], ["ImageInspectError", message]);
  assert.deepEqual(node.events, [
    `${at} Warning InspectFailed ${message}`,
    `${at} Warning Failed Error: ImageInspectError`,
  ]);
});

test("an image without tag is asked for as :latest, without adding a registry; annotations of the pod go along", async () => {
  const node = new Node();
  let annotations: unknown;
  const { pullImage } = node.service;
  const service = Object.assign(node.service, {
    pullImage: (...call: Parameters<typeof pullImage>) => {
      annotations = call[0].image?.annotations;
      return pullImage(...call);
    },
  });
  service.registry.set("nginx:latest", { id: "sha256:n" });
  await node.ensure({ image: "nginx", pod: podOf("p1", { a: "b" }) });
  assert.deepEqual(node.service.pulls, [{ image: "nginx:latest", login: "", runtimeHandler: "" }]);
  assert.deepEqual(annotations, { a: "b" });
  assert.match(node.events[0] ?? "", /Pulling image "nginx"$/);
});

for (const imagesPerRuntimeHandler of [false, true]) {
  test(`the runtime handler is ${imagesPerRuntimeHandler ? "" : "not "}sent as the gate says`, async () => {
    const node = new Node({ imagesPerRuntimeHandler });
    node.service.registry.set(image, { id: "sha256:app" });
    await node.ensure({ runtimeHandler: "kata" });
    assert.equal(node.service.pulls[0]?.runtimeHandler, imagesPerRuntimeHandler ? "kata" : "");
  });
}

test("credentials are tried in order until one works", async () => {
  const node = new Node();
  node.service.registry.set(image, { id: "sha256:app", logins: ["b:2"] });
  node.logins = ["a:1", "b:2", "c:3"];
  await node.ensure();
  assert.deepEqual(
    node.service.pulls.map(({ login }) => login),
    ["a:1", "b:2"],
  );
});

for (const { about, logins, message } of [
  {
    about: "each different failure once",
    logins: ["a:1", "a:2", "b:3"],
    message: '[pull access denied for "a", pull access denied for "b"]',
  },
  { about: "the same failure without brackets", logins: ["a:1", "a:2"], message: 'pull access denied for "a"' },
  { about: "anonymously when there are none", logins: [], message: 'pull access denied for ""' },
]) {
  test(`no credential works: ${about}`, async () => {
    const node = new Node();
    node.service.registry.set(image, { id: "sha256:app", logins: [] });
    node.logins = logins;
    const error = await node.refusal();
    assert.deepEqual([error.reason, error.message], ["ErrImagePull", message]);
    assert.deepEqual(node.events.slice(1), [
      `${at} Warning Failed Failed to pull image "reg.io/app:1": ${message}`,
      `${at} Warning Failed Error: ErrImagePull`,
    ]);
    assert.equal(node.service.pulls.length, Math.max(logins.length, 1));
    assert.deepEqual(node.used, []);
  });
}

test("the code stays in the text unless it says nothing", async () => {
  const node = new Node();
  const error = await node.refusal();
  assert.equal(error.message, 'rpc error: code = NotFound desc = failed to resolve reference "reg.io/app:1"');
});

for (const { text, reason, message } of [
  {
    text: "RegistryUnavailable: 503 from the registry",
    reason: "RegistryUnavailable",
    message: "image pull failed for reg.io/app:1 because the registry is unavailable: 503 from the registry",
  },
  {
    text: "SignatureValidationFailed: no key",
    reason: "SignatureValidationFailed",
    message: "image pull failed for reg.io/app:1 because the signature validation failed: no key",
  },
  { text: "x RegistryUnavailable", reason: "ErrImagePull", message: "x RegistryUnavailable" },
]) {
  test(`a runtime that says "${text}"`, async () => {
    const node = new Node();
    Object.assign(node.service, {
      pullImage: async () => {
        throw new CriError("Unknown", "pullImage", text);
      },
    });
    const error = await node.refusal();
    assert.deepEqual([error.reason, error.message], [reason, message]);
    assert.deepEqual(node.events.slice(1), [
      `${at} Warning Failed Failed to pull image "reg.io/app:1": ${text}`,
      `${at} Warning Failed Error: ${reason}`,
    ]);
  });
}

test("the rate of pulls is limited without waiting; what is refused counts as failed", async () => {
  const node = new Node({ registryPullQps: 5, registryBurst: 2 });
  node.service.registry.set(image, { id: "sha256:app" });
  for (const uid of ["p1", "p2"]) await node.ensure({ pod: podOf(uid), pullPolicy: "Always" });
  const error = await node.refusal({ pod: podOf("p3"), pullPolicy: "Always" });
  assert.deepEqual([error.reason, error.message], ["ErrImagePull", "pull QPS exceeded"]);
  assert.equal(node.service.pulls.length, 2);
  assert.equal((await node.refusal({ pod: podOf("p3"), pullPolicy: "Always" })).reason, "ImagePullBackOff");
  await node.clock.advance(200);
  await node.ensure({ pod: podOf("p4"), pullPolicy: "Always" });
});

test("a pull that takes long says every 30 s how far it is", async () => {
  const digest = "a";
  const content: ImageContent = {
    ingests: async () => [{ digest, bytes: 2_500_000, totalBytes: 0 }],
    manifests: async () => [{ digest: "sha256:m", layers: [{ digest, bytes: 10_000_000 }] }],
    present: async () => new Set(),
  };
  const node = new Node({}, { content: () => content });
  node.service.registry.set(image, { id: "sha256:app", size: 10n });
  node.service.hold(image);
  const pulled = node.ensure({ pod: podOf("p1"), fieldPath: undefined });
  await node.clock.advance(29_999);
  assert.equal(node.events.length, 1);
  await node.clock.advance(30_001);
  node.service.release(image);
  await pulled;
  const far = 'p1 - Normal Pulling Pulling image "reg.io/app:1": 2.5 MB of 10.0 MB, 0 of 1 layers';
  assert.deepEqual(node.events.slice(1, 3), [far, far]);
  assert.match(node.events[3] ?? "", /Successfully pulled/);
  assert.equal(node.events.length, 4);
  assert.equal(node.clock.pendingTimers, 0);
});

test("a pull secret that cannot be decoded fails the pull, but not the use of a present image", async () => {
  const find = async (): Promise<never> => {
    throw new PullSecretError('image pull secret "ns/s" cannot be used: not valid JSON');
  };
  const node = new Node({}, { credentials: { find } });
  const error = await node.refusal();
  assert.deepEqual(
    [error.reason, error.message],
    ["ErrImagePull", 'image pull secret "ns/s" cannot be used: not valid JSON'],
  );
  node.service.preload(image, { id: "sha256:app" });
  assert.equal((await node.ensure()).imageRef, "sha256:app");
});

for (const { container, expected } of [
  { container: { name: "c", image: "nginx" }, expected: "Always" },
  { container: { name: "c", image: "nginx:1" }, expected: "IfNotPresent" },
  { container: { name: "c", image: "nginx", imagePullPolicy: "Never" }, expected: "Never" },
]) {
  test(`pull policy of ${JSON.stringify(container)}`, () => {
    const wanted = imageOf({ kind: "sidecar", container });
    assert.deepEqual(wanted, {
      image: container.image,
      pullPolicy: expected,
      fieldPath: "spec.initContainers{c}",
    });
  });
}
