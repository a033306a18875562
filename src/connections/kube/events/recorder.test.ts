import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import type { Event, IdentifiedPod, PodEvent } from "../../../ground/model/index.ts";
import { ApiError } from "../api-error.ts";
import type { Patch } from "../client.ts";
import type { ObjectRef } from "../resources.ts";
import { EventRecorder } from "./recorder.ts";

/** Keeps events as the API server does: names are unique, patches change what is there. */
class EventServer {
  readonly events = new Map<string, Event>();
  readonly requests: string[] = [];
  trouble: (() => Error) | undefined;

  async create(_resource: unknown, { namespace }: ObjectRef, body: Event): Promise<Event> {
    this.requests.push("create");
    if (this.trouble !== undefined) throw this.trouble();
    const key = `${namespace}/${body.metadata.name}`;
    if (this.events.has(key)) throw refusal(409, "AlreadyExists");
    this.events.set(key, body);
    return body;
  }

  async patch(_resource: unknown, { namespace, name }: ObjectRef, { body }: Patch): Promise<Event> {
    this.requests.push(`patch ${JSON.stringify(body)}`);
    if (this.trouble !== undefined) throw this.trouble();
    const key = `${namespace}/${name}`;
    const known = this.events.get(key);
    if (known === undefined) throw refusal(404, "NotFound");
    const patched = { ...known, ...body } as Event;
    this.events.set(key, patched);
    return patched;
  }

  /** `reason x count: message`, in the order of creation. */
  get lines(): readonly string[] {
    return [...this.events.values()].map(({ reason, count, message }) => `${reason} x${count}: ${message}`);
  }
}

function refusal(code: number, reason: string): ApiError {
  return new ApiError({ code, reason, message: reason, request: "POST /events" });
}

const pod: IdentifiedPod = {
  metadata: { name: "web", namespace: "shop", uid: "u1", resourceVersion: "42" },
  spec: { containers: [] },
};
const started: PodEvent = { type: "Normal", reason: "Started", message: "Started container web" };

interface World extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly server: EventServer;
  readonly recorder: EventRecorder;
}

function start(churn: () => "calm" | "busy" | "crowded" = () => "calm"): World {
  const clock = new FakeClock();
  const server = new EventServer();
  const recorder = new EventRecorder("node-1", {
    client: server as never,
    clock,
    log: silentLogger,
    random: () => 0.5,
    churn,
  });
  const scope = new TaskScope();
  scope.spawn("events", (signal) => recorder.run(signal));
  return { clock, server, recorder, [Symbol.asyncDispose]: () => scope.stop() };
}

test("an event of a container, field by field", async () => {
  await using world = start();
  world.recorder.pod(pod, { ...started, fieldPath: "spec.containers{web}", annotations: { a: "b" } });
  await settle();
  const nanos = (BigInt(world.clock.now()) * 1_000_000n).toString(16);
  assert.deepEqual(
    [...world.server.events.values()],
    [
      {
        apiVersion: "v1",
        kind: "Event",
        metadata: { name: `web.${nanos}`, namespace: "shop", annotations: { a: "b" } },
        involvedObject: {
          kind: "Pod",
          namespace: "shop",
          name: "web",
          uid: "u1",
          apiVersion: "v1",
          resourceVersion: "42",
          fieldPath: "spec.containers{web}",
        },
        reason: "Started",
        message: "Started container web",
        source: { component: "kubelet", host: "node-1" },
        firstTimestamp: "2026-01-01T00:00:00Z",
        lastTimestamp: "2026-01-01T00:00:00Z",
        count: 1,
        type: "Normal",
        reportingComponent: "kubelet",
        reportingInstance: "node-1",
      },
    ],
  );
});

test("an event of the node lives in the default namespace and has the node's name as uid", async () => {
  await using world = start();
  world.recorder.node({ type: "Normal", reason: "Starting", message: "Starting kubelet." });
  await settle();
  const [event] = [...world.server.events.values()];
  assert.deepEqual(event?.involvedObject, { kind: "Node", name: "node-1", uid: "node-1" });
  assert.equal(event?.metadata.namespace, "default");
});

test("two events at the same moment have different names; a name that is no subdomain gives way to a UUID", async () => {
  await using world = start();
  world.recorder.pod(pod, started);
  world.recorder.pod(pod, { ...started, message: "Started container db" });
  world.recorder.pod({ ...pod, metadata: { ...pod.metadata, name: "Odd_Name", uid: "u2" } }, started);
  await settle();
  const names = [...world.server.events.values()].map(({ metadata }) => metadata.name ?? "");
  assert.equal(new Set(names).size, 3);
  assert.match(names[2] ?? "", /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
});

test("what happens again is counted in the first event", async () => {
  await using world = start();
  const { clock, server, recorder } = world;
  for (let count = 0; count < 3; count++) {
    recorder.pod(pod, started);
    await clock.advance(60_000);
  }
  assert.deepEqual(server.lines, ["Started x3: Started container web"]);
  assert.deepEqual(server.requests, [
    "create",
    'patch {"count":2,"lastTimestamp":"2026-01-01T00:01:00Z","message":"Started container web"}',
    'patch {"count":3,"lastTimestamp":"2026-01-01T00:02:00Z","message":"Started container web"}',
  ]);
  const [event] = [...server.events.values()];
  assert.equal(event?.firstTimestamp, "2026-01-01T00:00:00Z");
});

test("another container, type, reason or message is another event", async () => {
  await using world = start();
  const { server, recorder } = world;
  for (const change of [
    { fieldPath: "spec.containers{a}" },
    { fieldPath: "spec.containers{b}" },
    { type: "Warning" as const },
    { reason: "Created" as const },
    { message: "other" },
  ]) {
    recorder.pod(pod, { ...started, ...change });
  }
  await settle(20);
  assert.equal(server.events.size, 5);
});

test("an event that the server has dropped meanwhile is made again, with its count", async () => {
  await using world = start();
  const { clock, server, recorder } = world;
  recorder.pod(pod, started);
  await clock.advance(60_000);
  server.events.clear();
  recorder.pod(pod, started);
  await clock.advance(60_000);
  assert.deepEqual(server.lines, ["Started x2: Started container web"]);
  recorder.pod(pod, started);
  await settle();
  assert.deepEqual(server.lines, ["Started x3: Started container web"]);
});

test("from the tenth similar message on they are combined", async () => {
  await using world = start();
  const { clock, server, recorder } = world;
  for (let count = 1; count <= 12; count++) {
    recorder.pod(pod, { ...started, message: `try ${count}` });
    await clock.advance(1_000);
  }
  const expected = Array.from({ length: 9 }, (_, index) => `Started x1: try ${index + 1}`);
  assert.deepEqual(server.lines, [...expected, "Started x3: (combined from similar events): try 12"]);
  // After ten quiet minutes they count as different matters again.
  await clock.advance(600_001);
  recorder.pod(pod, { ...started, message: "much later" });
  await settle();
  assert.equal(server.lines.at(-1), "Started x1: much later");
});

test("an object that says too much is cut short, for its type only", async () => {
  await using world = start();
  const { clock, server, recorder } = world;
  for (let count = 0; count < 40; count++) recorder.pod(pod, started);
  await clock.advance(0);
  await settle(100);
  assert.equal(server.requests.length, 25);
  recorder.pod(pod, { ...started, type: "Warning" });
  recorder.pod({ ...pod, metadata: { ...pod.metadata, name: "db", uid: "u2" } }, started);
  await settle(10);
  assert.equal(server.requests.length, 27);
  await clock.advance(300_000);
  recorder.pod(pod, started);
  recorder.pod(pod, started);
  await settle(10);
  assert.equal(server.requests.length, 28);
});

test("while the server is away events wait, are tried twelve times, and then given up", async () => {
  await using world = start();
  const { clock, server, recorder } = world;
  server.trouble = () => new Error("connect ECONNREFUSED");
  recorder.pod(pod, started);
  recorder.pod(pod, { ...started, reason: "Created" });
  await clock.advance(5_000);
  assert.equal(server.requests.length, 2, "the second try comes after part of the ten seconds");
  await clock.advance(99_000);
  assert.equal(server.requests.length, 11);
  await clock.advance(1_000);
  // The twelfth try of the first, then the first of the second.
  assert.equal(server.requests.length, 13);
  server.trouble = undefined;
  await clock.advance(10_000);
  assert.deepEqual(server.lines, ["Created x1: Started container web"]);
});

for (const [code, reason] of [
  [403, "Forbidden"],
  [409, "AlreadyExists"],
  [422, "Invalid"],
  [500, "InternalError"],
] as const) {
  test(`a refusal (${code}) is not tried again`, async () => {
    await using world = start();
    const { clock, server, recorder } = world;
    server.trouble = () => refusal(code, reason);
    recorder.pod(pod, started);
    await clock.advance(120_000);
    assert.equal(server.requests.length, 1);
  });
}

for (const { level, holdMs } of [
  { level: "busy", holdMs: 1_000 },
  { level: "crowded", holdMs: 5_000 },
] as const) {
  test(`while the node is ${level} with pods, events wait; not for ever`, async () => {
    let churn: "calm" | "busy" | "crowded" = level;
    await using world = start(() => churn);
    const { clock, server, recorder } = world;
    recorder.pod(pod, started);
    await clock.advance(500);
    assert.equal(server.requests.length, 0);
    churn = "calm";
    await clock.advance(100);
    assert.equal(server.requests.length, 1);
    churn = level;
    recorder.pod(pod, { ...started, reason: "Killing" });
    await clock.advance(holdMs - 100);
    assert.equal(server.requests.length, 1);
    await clock.advance(200);
    assert.equal(server.requests.length, 2);
  });
}

test("a thousand events may wait, more are dropped", async () => {
  const clock = new FakeClock();
  const server = new EventServer();
  const ports = { client: server as never, clock, log: silentLogger, random: () => 0.5, churn: () => "calm" as const };
  const recorder = new EventRecorder("node-1", ports);
  for (let count = 0; count < 1_200; count++) {
    recorder.pod({ ...pod, metadata: { ...pod.metadata, name: `p${count}`, uid: `u${count}` } }, started);
  }
  assert.equal(recorder.waiting, 1_000);
  await using scope = new TaskScope();
  scope.spawn("events", (signal) => recorder.run(signal));
  while (recorder.waiting > 0) await settle();
  await settle();
  assert.equal(server.events.size, 1_000);
  assert.equal(server.events.has([...server.events.keys()].find((key) => key.startsWith("shop/p999.")) ?? ""), true);
});

test("while the server is away, an object that says too much leaves room for the others", async () => {
  await using world = start();
  const { clock, server, recorder } = world;
  server.trouble = () => new Error("connect ECONNREFUSED");
  for (let count = 0; count < 2_000; count++) recorder.pod(pod, { ...started, message: `try ${count}` });
  recorder.pod({ ...pod, metadata: { ...pod.metadata, name: "db", uid: "u2" } }, { ...started, message: "heard" });
  await clock.advance(0);
  server.trouble = undefined;
  await clock.advance(10_000);
  await settle(100);
  assert.equal(server.lines.at(-1), "Started x1: heard");
  assert.equal(recorder.waiting, 0);
  for (let count = 0; count < 50; count++) recorder.pod(pod, started);
  assert.equal(recorder.waiting, 50, "what was delivered makes room");
});
