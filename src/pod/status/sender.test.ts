import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { testPod, testUid } from "../../../test/support/pods.ts";
import { ApiError } from "../../connections/kube/index.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import type { IdentifiedPod, PodStatus, PodUid } from "../../ground/model/index.ts";
import { StatusSender } from "./sender.ts";

interface StatusPatch {
  readonly metadata: { readonly uid: string };
  readonly status?: PodStatus;
}

interface DeleteOptions {
  readonly preconditions: { readonly uid: string };
}

/** One pod in an API server that answers as kube-apiserver does, and the sender that reports to it. */
class Fixture implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly scope = new TaskScope();
  /** What the API server holds under the pod's name. */
  stored: IdentifiedPod | undefined = testPod();
  /** What the watch has brought us. */
  seen: IdentifiedPod | undefined = testPod();
  status: PodStatus = { phase: "Running" };
  failWith: Error | undefined;
  isOver = false;
  /** Happens while a patch is on its way. */
  onPatch: (status: PodStatus | undefined) => void = () => {};
  readonly requests: string[] = [];
  readonly sender = new StatusSender(this.scope, {
    clock: this.clock,
    log: silentLogger,
    atOnce: 1,
    apiPod: () => this.seen,
    status: () => this.status,
    client: {
      patch: async (_resource: unknown, _ref: unknown, { body }: { readonly body: StatusPatch }) => this.#patch(body),
      delete: async (_resource: unknown, _ref: unknown, { preconditions }: DeleteOptions) =>
        this.#delete(preconditions.uid),
    } as never,
    onSent: (pod) => {
      this.seen = pod;
    },
    mayDelete: () => this.isOver,
  });

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
  }

  #patch({ metadata, status }: StatusPatch): IdentifiedPod {
    this.requests.push("patch");
    this.onPatch(status);
    if (this.failWith !== undefined) throw this.failWith;
    if (this.stored === undefined) throw refusal(404, "NotFound");
    if (this.stored.metadata.uid !== metadata.uid) throw refusal(422, "Invalid", "metadata.uid");
    this.stored = { ...this.stored, status: { ...this.stored.status, ...status } };
    return this.stored;
  }

  #delete(uid: string): void {
    this.requests.push("delete");
    if (this.stored === undefined) throw refusal(404, "NotFound");
    if (this.stored.metadata.uid !== uid) throw refusal(409, "Conflict");
    this.stored = undefined;
  }
}

function refusal(code: number, reason: string, field?: string): ApiError {
  const causes = field === undefined ? [] : [{ reason: "FieldValueInvalid", field, message: "field is immutable" }];
  return new ApiError({ code, reason, message: reason, request: "PATCH", details: { causes } });
}

test("a status reaches the API once, and is not sent again", async () => {
  await using at = new Fixture();
  at.sender.wake(testUid);
  await settle();
  at.sender.wake(testUid);
  await settle();
  assert.equal(at.stored?.status?.phase, "Running");
  assert.deepEqual(at.requests, ["patch"]);
});

const another = testPod({}, { uid: "uid-2" as PodUid });
for (const [name, stored] of [
  ["the pod is gone", undefined],
  ["another pod has its name", another],
] as const) {
  test(`${name}: its status is dropped, not tried again`, async () => {
    await using at = new Fixture();
    at.stored = stored;
    at.sender.wake(testUid);
    await at.clock.advance(60_000);
    assert.deepEqual(at.requests, ["patch"]);
    assert.equal(at.stored, stored);
    assert.equal(at.clock.pendingTimers, 0);
  });

  test(`${name}: nothing is deleted in its place`, async () => {
    await using at = new Fixture();
    at.stored = stored;
    at.seen = testPod();
    at.status = { phase: "Failed" };
    at.isOver = true;
    at.sender.wake(testUid);
    await at.clock.advance(60_000);
    assert.deepEqual(at.requests, ["patch"]);
    assert.equal(at.stored, stored);
  });
}

for (const error of [refusal(500, "InternalError"), refusal(422, "Invalid", "status.podIPs"), new Error("no way")]) {
  test(`"${error.message}" is tried again, ever more slowly, until it works`, async () => {
    await using at = new Fixture();
    at.failWith = error;
    at.sender.wake(testUid);
    await at.clock.advance(60_000);
    // After 0, 0.25, 0.75, 1.75, 3.75, 7.75 s, then every 10 s.
    assert.equal(at.requests.length, 11);
    at.failWith = undefined;
    await at.clock.advance(10_000);
    assert.equal(at.stored?.status?.phase, "Running");
    assert.equal(at.clock.pendingTimers, 0);
  });
}

test("a pod that is over is deleted only after its end is in the API", async () => {
  await using at = new Fixture();
  at.status = { phase: "Succeeded" };
  at.isOver = true;
  at.failWith = refusal(500, "InternalError");
  at.sender.wake(testUid);
  await at.clock.advance(1_000);
  assert.ok(!at.requests.includes("delete"));
  at.failWith = undefined;
  await at.clock.advance(10_000);
  assert.equal(at.requests.at(-1), "delete");
  assert.equal(at.stored, undefined);
});

test("a pod that ends while an older status is on its way is not deleted before its end is in the API", async () => {
  await using at = new Fixture();
  at.status = { phase: "Running" };
  const sent: (string | undefined)[] = [];
  at.onPatch = (status) => {
    sent.push(status?.phase);
    if (status?.phase !== "Running") return;
    at.status = { phase: "Failed" };
    at.isOver = true;
    at.sender.wake(testUid);
  };
  at.sender.wake(testUid);
  await settle();
  assert.deepEqual(sent, ["Running", "Failed"]);
  assert.deepEqual(at.requests, ["patch", "patch", "delete"]);
});

const making: PodStatus = {
  phase: "Pending",
  containerStatuses: [
    {
      name: "main",
      image: "",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: "ContainerCreating" } },
    },
  ],
};
const ready = (generation: number, status: "True" | "False" = "True") => [
  { type: "Ready", status, observedGeneration: generation },
];
const deleted = testPod({}, { deletionTimestamp: "2026-01-01T00:00:00Z" });
for (const { name, api, passing, next } of [
  { name: "that containers are being made", api: testPod(), passing: making, next: { phase: "Running" } },
  {
    name: "that a deletion was noticed",
    api: { ...deleted, status: { phase: "Running", observedGeneration: 1, conditions: ready(1) } },
    passing: { phase: "Running", observedGeneration: 2, conditions: ready(2) },
    next: { phase: "Succeeded", observedGeneration: 2, conditions: ready(2, "False") },
  },
] as const) {
  test(`news ${name} waits a moment for what comes next, and goes with it`, async () => {
    await using at = new Fixture();
    at.seen = at.stored = api as IdentifiedPod;
    at.status = passing as PodStatus;
    at.sender.wake(testUid);
    await at.clock.advance(900);
    assert.deepEqual(at.requests, []);
    at.status = next as PodStatus;
    at.sender.wake(testUid);
    await settle();
    assert.deepEqual(at.requests, ["patch"]);
    assert.equal(at.stored?.status?.phase, next.phase);
  });

  test(`news ${name} is told in time when nothing comes next`, async () => {
    await using at = new Fixture();
    at.seen = at.stored = api as IdentifiedPod;
    at.status = passing as PodStatus;
    at.sender.wake(testUid);
    await at.clock.advance(600);
    // Being reminded of it is no news.
    at.sender.wake(testUid);
    await at.clock.advance(500);
    assert.deepEqual(at.requests, ["patch"]);
    assert.equal(at.clock.pendingTimers, 0);
  });
}

test("a container that cannot be made is told at once", async () => {
  await using at = new Fixture();
  const [container] = making.containerStatuses ?? [];
  assert.ok(container !== undefined);
  at.status = { ...making, containerStatuses: [{ ...container, state: { waiting: { reason: "ErrImagePull" } } }] };
  at.sender.wake(testUid);
  await settle();
  assert.deepEqual(at.requests, ["patch"]);
});

test("a pod is finally deleted once, however late the watch tells of it, and again when it has changed", async () => {
  await using at = new Fixture();
  at.status = { phase: "Failed" };
  at.isOver = true;
  const version = (resourceVersion: string): IdentifiedPod => ({
    ...testPod({}, { deletionTimestamp: "2026-01-01T00:00:00Z", resourceVersion }),
    status: { phase: "Failed" },
  });
  at.stored = at.seen = version("7");
  at.sender.wake(testUid);
  await settle();
  at.sender.wake(testUid);
  await settle();
  assert.deepEqual(at.requests, ["delete"]);
  at.stored = at.seen = version("8");
  at.sender.wake(testUid);
  await settle();
  assert.deepEqual(at.requests, ["delete", "delete"]);
});

test("conditions of others stay as the API has them", async () => {
  await using at = new Fixture();
  const gate = { type: "example.com/gate", status: "True" } as const;
  at.seen = { ...testPod(), status: { conditions: [gate] } };
  at.stored = at.seen;
  at.status = {
    conditions: [
      { type: "Ready", status: "False" },
      { ...gate, status: "False" },
    ],
  };
  const sent: object[] = [];
  const sender = new StatusSender(at.scope, {
    clock: at.clock,
    log: silentLogger,
    atOnce: 1,
    apiPod: () => at.seen,
    status: () => at.status,
    client: {
      patch: async (_resource: unknown, _ref: unknown, { body }: { readonly body: object }) => {
        sent.push(body);
        return at.seen;
      },
    } as never,
    onSent: () => {},
    mayDelete: () => false,
  });
  sender.wake(testUid);
  await settle();
  assert.deepEqual(sent, [
    {
      metadata: { uid: testUid },
      status: {
        "$setElementOrder/conditions": [{ type: "example.com/gate" }, { type: "Ready" }],
        conditions: [{ type: "Ready", status: "False" }],
      },
    },
  ]);
});

const tooLargeForServer = refusal(413, "RequestEntityTooLarge");
const tooLargeForDatabase = new ApiError({
  code: 500,
  reason: "InternalError",
  message: "etcdserver: request is too large",
  request: "PATCH",
});
const tooLargeToSend = new ApiError({
  code: 500,
  reason: "InternalError",
  message: "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)",
  request: "PATCH",
});

for (const error of [tooLargeForServer, tooLargeForDatabase, tooLargeToSend]) {
  for (const [room, expected] of [
    [60_000, "shortened"],
    [2_000, "left out"],
  ] as const) {
    test(`a status that is too large is ${expected} where ${room} bytes fit: ${error.message}`, async () => {
      await using at = new Fixture();
      const message = "x".repeat(300);
      at.status = {
        phase: "Running",
        podIP: "10.0.0.7",
        conditions: [{ type: "Ready", status: "False", reason: "ContainersNotReady", message: message.repeat(20) }],
        containerStatuses: Array.from({ length: 300 }, (_, index) => ({
          name: `c${index}`,
          ready: index > 0,
          restartCount: index,
          image: "busybox:1",
          imageID: "sha256:1",
          state: { waiting: { reason: "ErrImagePull", message } },
        })),
      };
      let most = 0;
      at.onPatch = (status) => {
        const size = JSON.stringify(status).length;
        at.failWith = size > room ? error : undefined;
        most = Math.max(most, size);
      };
      at.sender.wake(testUid);
      await settle();
      const { phase, podIP, conditions, containerStatuses = [], message: said } = at.stored?.status ?? {};
      assert.deepEqual([phase, podIP, conditions?.[0]?.reason], ["Running", "10.0.0.7", "ContainersNotReady"]);
      assert.match(said ?? "", new RegExp(`The statuses of 300 containers are ${expected}`));
      assert.deepEqual(
        containerStatuses.map(({ restartCount, state }) => [restartCount, state]),
        expected === "left out"
          ? []
          : at.status.containerStatuses?.map((_, index) => [index, { waiting: { reason: "ErrImagePull" } }]),
      );
      // What was too much once is not tried again with each change.
      most = 0;
      at.status = { ...at.status, podIP: "10.0.0.8" };
      at.sender.wake(testUid);
      await settle();
      assert.equal(at.stored?.status?.podIP, "10.0.0.8");
      assert.ok(most < room, `${most} bytes`);
      const sent = at.requests.length;
      at.sender.wake(testUid);
      await settle();
      assert.equal(at.requests.length, sent);
    });
  }
}

test("a pod that is too large without any status is tried again, patiently", async () => {
  await using at = new Fixture();
  at.failWith = tooLargeForServer;
  at.sender.wake(testUid);
  await settle();
  assert.equal(at.requests.length, 3);
  await at.clock.advance(60_000);
  assert.ok(at.requests.length < 15, `${at.requests.length} requests in a minute`);
});
