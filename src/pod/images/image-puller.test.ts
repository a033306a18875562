import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { FakeImageService } from "../../../test/support/fake-image-service.ts";
import { CriError } from "../../connections/cri/index.ts";
import type { IdentifiedPod, PodEvent } from "../../ground/model/index.ts";
import { ImageError } from "./image-error.ts";
import {
  type ImagePhase,
  ImagePuller,
  type ImagePullerPorts,
  type ImagePullerSettings,
  type ImageRequest,
  imageOf,
} from "./image-puller.ts";
import type { Credential } from "./keyring.ts";
import type { PullOutcome } from "./pull-attempts.ts";
import { PullSecretError } from "./pull-credentials.ts";

const image = "reg.io/app:1";

class Node {
  readonly clock = new FakeClock();
  readonly service = new FakeImageService();
  readonly events: string[] = [];
  readonly outcomes: PullOutcome[] = [];
  readonly used: string[] = [];
  readonly puller: ImagePuller;
  logins: readonly string[] = [];

  constructor(settings: Partial<ImagePullerSettings> = {}, ports: Partial<ImagePullerPorts> = {}) {
    this.puller = new ImagePuller(
      {
        registryPullQps: 0,
        registryBurst: 10,
        longestPullMs: undefined,
        serializeImagePulls: true,
        maxParallelImagePulls: undefined,
        imagesPerRuntimeHandler: false,
        ...settings,
      },
      {
        images: this.service,
        access: undefined,
        clock: this.clock,
        onPull: (outcome) => this.outcomes.push(outcome),
        credentials: { find: async () => this.logins.map(credentialOf) },
        recordEvent: (pod, event) => this.events.push(describe(pod, event)),
        onUse: (id) => this.used.push(id),
        ...ports,
      },
    );
  }

  ensure(request: Partial<ImageRequest> = {}, signal = new AbortController().signal) {
    return this.puller.ensure(
      {
        pod: podOf("p1"),
        image,
        pullPolicy: "IfNotPresent",
        fieldPath: "spec.containers{c}",
        pullSecrets: [],
        sandboxConfig: undefined,
        runtimeHandler: "",
        ...request,
      },
      signal,
    );
  }

  async refusal(request: Partial<ImageRequest> = {}): Promise<ImageError> {
    const error: unknown = await this.ensure(request).then(
      () => assert.fail("the image was had"),
      (reason) => reason,
    );
    assert.ok(error instanceof ImageError, String(error));
    return error;
  }

  takeEvents(): readonly string[] {
    return this.events.splice(0);
  }
}

function describe(pod: IdentifiedPod, { type, reason, message, fieldPath }: PodEvent): string {
  return `${pod.metadata.name} ${fieldPath ?? "-"} ${type} ${reason} ${message}`;
}

function podOf(uid: string, annotations: Record<string, string> = {}): IdentifiedPod {
  return { metadata: { name: uid, namespace: "ns", uid, annotations }, spec: { containers: [] } };
}

function credentialOf(login: string): Credential {
  const [username = "", password = ""] = login.split(":");
  return { username, password, source: { type: "node" } };
}

const at = "p1 spec.containers{c}";

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

test("back-off: 10 s doubling to 5 min, measured from the failure, with the failure in the message", async () => {
  const node = new Node();
  const waits: number[] = [];
  for (let round = 0; round < 7; round++) {
    const failure = await node.refusal();
    assert.equal(failure.reason, "ErrImagePull");
    assert.ok(failure.nextTryAt !== undefined);
    waits.push(failure.nextTryAt - node.clock.now());
    await node.clock.advance(failure.nextTryAt - node.clock.now() - 1);
    const tooEarly = await node.refusal();
    assert.equal(tooEarly.reason, "ImagePullBackOff");
    assert.equal(tooEarly.nextTryAt, failure.nextTryAt);
    await node.clock.advance(1);
  }
  assert.deepEqual(waits, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
  assert.equal(node.service.pulls.length, 7);
});

test("back-off: texts and events", async () => {
  const node = new Node();
  await node.refusal();
  node.takeEvents();
  const error = await node.refusal();
  assert.equal(
    error.message,
    'Back-off pulling image "reg.io/app:1": ErrImagePull: rpc error: code = NotFound desc = failed to resolve reference "reg.io/app:1"',
  );
  assert.deepEqual(node.events, [
    `${at} Normal BackOff Back-off pulling image "reg.io/app:1"`,
    `${at} Warning Failed Error: ImagePullBackOff`,
  ]);
});

test("back-off: is of one pod and one image, ends after 10 min of quiet, and with the pod", async () => {
  const node = new Node();
  const retried = async (request: Partial<ImageRequest> = {}): Promise<boolean> =>
    (await node.refusal(request)).reason !== "ImagePullBackOff";
  assert.equal(await retried(), true);
  assert.equal(await retried(), false);
  assert.equal(await retried({ pod: podOf("p2") }), true);
  assert.equal(await retried({ image: "reg.io/other:1" }), true);
  node.puller.backoff.forgetPod("p1");
  assert.equal(await retried(), true);
  await node.clock.advance(10_000);
  assert.equal((await node.refusal()).nextTryAt, node.clock.now() + 20_000);
  await node.clock.advance(600_001);
  assert.equal((await node.refusal()).nextTryAt, node.clock.now() + 10_000);
});

test("back-off: a present image is used meanwhile, a success forgets what is old", async () => {
  const node = new Node();
  await node.refusal();
  node.service.preload(image, { id: "sha256:app" });
  assert.equal((await node.ensure()).imageRef, "sha256:app");
  await node.clock.advance(600_001);
  node.service.registry.set("reg.io/other:1", { id: "sha256:other" });
  await node.ensure({ image: "reg.io/other:1" });
  assert.deepEqual(node.puller.backoff.save(), []);
});

test("back-off: kept across a restart when saved, and not stretched by a clock set back", async () => {
  const node = new Node();
  await node.refusal();
  await node.clock.advance(4_000);
  const saved = JSON.parse(JSON.stringify(node.puller.backoff.save()));
  const restarted = new Node();
  restarted.puller.backoff.restore(saved);
  await restarted.clock.advance(4_000);
  const error = await restarted.refusal();
  assert.equal(error.reason, "ImagePullBackOff");
  assert.equal(error.nextTryAt, restarted.clock.now() + 6_000);
  const past = new Node();
  past.puller.backoff.restore(saved);
  Object.assign(past.clock, { now: () => Date.UTC(2025, 0, 1) });
  assert.equal((await past.refusal()).reason, "ErrImagePull");
});

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

test("pods that want the same image with the same credentials share one pull; each gets its own events", async () => {
  const node = new Node();
  node.service.registry.set(image, { id: "sha256:app", size: 10n });
  node.service.hold(image);
  const phases: Record<string, ImagePhase[]> = { p1: [], p2: [] };
  const want = (uid: string) =>
    node.ensure({ pod: podOf(uid), fieldPath: undefined, onPhase: (phase) => phases[uid]?.push(phase) });
  const first = want("p1");
  await node.clock.advance(2_000);
  const second = want("p2");
  await node.clock.advance(1_234);
  assert.deepEqual(node.puller.list(), [{ image, podUids: ["p1", "p2"], ageMs: 3_234 }]);
  node.service.release(image);
  await Promise.all([first, second]);
  assert.equal(node.service.pulls.length, 1);
  assert.deepEqual(node.events, [
    'p1 - Normal Pulling Pulling image "reg.io/app:1"',
    'p2 - Normal Pulling Pulling image "reg.io/app:1"',
    'p1 - Normal Pulled Successfully pulled image "reg.io/app:1" in 3.234s (3.234s including waiting). Image size: 10 bytes.',
    'p2 - Normal Pulled Successfully pulled image "reg.io/app:1" in 3.234s (1.234s including waiting). Image size: 10 bytes.',
  ]);
  assert.deepEqual(phases, {
    p1: [{ type: "pulling", ageMs: 0 }],
    p2: [{ type: "pulling", ageMs: 2_000 }],
  });
  assert.deepEqual(node.outcomes, [{ outcome: "pulled", durationMs: 3_234, sizeBytes: 10n }]);
});

test("other credentials make it another pull", async () => {
  const node = new Node({ serializeImagePulls: false });
  node.service.registry.set(image, { id: "sha256:app", logins: ["a:1", "b:2"] });
  node.service.hold(image);
  node.logins = ["a:1"];
  const first = node.ensure({ pod: podOf("p1") });
  await settle();
  node.logins = ["b:2"];
  const second = node.ensure({ pod: podOf("p2") });
  await settle();
  assert.deepEqual(
    node.service.pulls.map(({ login }) => login),
    ["a:1", "b:2"],
  );
  node.service.release(image);
  await Promise.all([first, second]);
});

test("a present image never waits behind a foreign pull, nor does one that arrives meanwhile", async () => {
  const node = new Node();
  for (const name of [image, "reg.io/huge:1", "reg.io/here:1"])
    node.service.registry.set(name, { id: `sha256:${name}` });
  node.service.preload("reg.io/here:1", { id: "sha256:here" });
  node.service.hold(image);
  node.service.hold("reg.io/huge:1");
  node.logins = ["a:1"];
  const first = node.ensure();
  await settle();
  const huge = node.ensure({ image: "reg.io/huge:1", pod: podOf("p2") });
  await settle();
  node.logins = ["b:2"];
  const phases: ImagePhase[] = [];
  const waits = node.ensure({ pod: podOf("p3"), onPhase: (phase) => phases.push(phase) });
  assert.equal((await node.ensure({ image: "reg.io/here:1", pod: podOf("p4") })).imageRef, "sha256:here");
  node.service.release(image);
  assert.equal((await waits).imageRef, `sha256:${image}`);
  assert.deepEqual(phases, [{ type: "queued" }]);
  assert.match(node.events.at(-1) ?? "", /^p3 .* already present on machine$/);
  node.service.release("reg.io/huge:1");
  await Promise.all([first, huge]);
  assert.equal(node.service.pulls.length, 2);
});

test("a pod that goes away stops its pull, says nothing more and is not held back later", async () => {
  const node = new Node();
  node.service.registry.set(image, { id: "sha256:app" });
  node.service.hold(image);
  const leaver = new AbortController();
  const leaving = node.ensure({}, leaver.signal);
  const rejected = assert.rejects(leaving, /pod deleted/);
  await settle();
  leaver.abort(new Error("pod deleted"));
  await rejected;
  assert.deepEqual(node.takeEvents(), [`${at} Normal Pulling Pulling image "reg.io/app:1"`]);
  assert.deepEqual(node.puller.list(), []);
  node.service.release(image);
  await node.ensure();
});

test("a limit on how long a pull may take, when configured", async () => {
  const node = new Node({ longestPullMs: 600_000 });
  node.service.registry.set(image, { id: "sha256:app" });
  node.service.hold(image);
  const refused = node.refusal();
  await node.clock.advance(600_000);
  assert.equal((await refused).message, "the pull was given up after 10m0s");
  assert.equal(node.clock.pendingTimers, 0);
  assert.deepEqual(node.outcomes, [{ outcome: "failed", durationMs: 600_000, sizeBytes: 0n }]);
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
