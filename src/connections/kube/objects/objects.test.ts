import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { FakeHistory } from "../../../../test/support/fake-history.ts";
import { silentLogger, TaskScope, TokenBucket } from "../../../ground/base/index.ts";
import type { ConfigMap } from "../../../ground/model/index.ts";
import { ApiError } from "../api-error.ts";
import { resources } from "../resources.ts";
import type { WatchClient } from "../watch/index.ts";
import { ObjectWatches } from "./object-watches.ts";
import { getObject, requestToken } from "./single-objects.ts";

const never = new AbortController().signal;

function start() {
  const clock = new FakeClock();
  const server = new FakeHistory(() => clock.monotonic());
  const scope = new TaskScope();
  const client = server as unknown as WatchClient;
  const watches = new ObjectWatches(scope, { client, clock, log: silentLogger, random: () => 0.5 });
  return { clock, server, scope, watches, [Symbol.asyncDispose]: () => scope.stop() };
}

const ref = { namespace: "ns", name: "a" };
const told = (into: (string | undefined)[]) => (object: ConfigMap | undefined) =>
  void into.push(object?.data?.["data"]);

test("an object is told as it is, then as it changes; its absence too", async () => {
  await using world = start();
  const { server, watches } = world;
  const seen: (string | undefined)[] = [];
  watches.watch(resources.configMaps, ref, told(seen), "pod");
  await settle();
  server.put("a", "1");
  server.put("a", "2");
  server.remove("a");
  await settle();
  assert.deepEqual(seen, [undefined, "1", "2", undefined]);
});

test("who comes later joins the watch and is told at once; the last to leave ends it", async () => {
  await using world = start();
  const { server, watches, scope } = world;
  server.put("a", "1");
  const first: (string | undefined)[] = [];
  const second: (string | undefined)[] = [];
  const one = watches.watch(resources.configMaps, ref, told(first), "pod");
  await settle();
  const two = watches.watch(resources.configMaps, ref, told(second), "pod");
  assert.deepEqual([first, second], [["1"], ["1"]]);
  assert.deepEqual([server.openWatches, watches.size], [1, 1]);
  one[Symbol.dispose]();
  server.put("a", "2");
  await settle();
  assert.deepEqual([first, second], [["1"], ["1", "2"]]);
  two[Symbol.dispose]();
  two[Symbol.dispose]();
  await settle();
  assert.deepEqual([server.openWatches, watches.size, scope.size], [0, 0, 0]);
  assert.equal(scope.signal.aborted, false);
  watches.watch(resources.configMaps, ref, told(first), "pod");
  await settle();
  assert.deepEqual(first, ["1", "2"]);
});

test("disposing before anything is known tells nothing", async () => {
  await using world = start();
  const { server, watches, clock } = world;
  server.mood = { type: "gone" };
  const seen: (string | undefined)[] = [];
  const watch = watches.watch(resources.configMaps, ref, told(seen), "pod");
  await clock.advance(5_000);
  watch[Symbol.dispose]();
  server.mood = { type: "well" };
  await clock.advance(60_000);
  assert.deepEqual([seen, world.scope.size, clock.pendingTimers], [[], 0, 0]);
});

test("a pod that names thousands of objects holds up neither another pod nor other requests", async () => {
  const clock = new FakeClock();
  const server = new FakeHistory(() => clock.monotonic());
  server.put("a", "1");
  const throttle = new TokenBucket(50, 100, clock);
  const bare = server as unknown as WatchClient;
  const client: WatchClient = {
    list: async (resource, object, options, signal) => {
      await throttle.take(signal);
      return await bare.list(resource, object, options, signal);
    },
    openWatch: async (resource, object, options, signal) => {
      await throttle.take(signal);
      return await bare.openWatch(resource, object, options, signal);
    },
  };
  await using scope = new TaskScope();
  const watches = new ObjectWatches(scope, { client, clock, log: silentLogger, random: () => 0.5 });
  for (let index = 0; index < 1_000; index++) {
    watches.watch(resources.configMaps, { namespace: "ns", name: `many-${index}` }, () => {}, "greedy");
  }
  const seen: (string | undefined)[] = [];
  watches.watch(resources.configMaps, ref, told(seen), "modest");
  await clock.advance(1_000);
  assert.deepEqual(seen, ["1"]);
  const began = clock.monotonic();
  const status = throttle.take(never).then(() => clock.monotonic() - began);
  await clock.advance(1_000);
  assert.ok((await status) < 500);
});

test("getObject: absent is undefined, other refusals are errors, cached asks for what is at hand", async () => {
  const asked: unknown[] = [];
  let code = 404;
  const client = {
    get: async (_: unknown, object: unknown, options: unknown) => {
      asked.push(object, options);
      if (code !== 200) throw new ApiError({ code, reason: "x", message: "no", request: "GET /" });
      return { metadata: { name: "a" } };
    },
  } as never;
  assert.equal(await getObject(client, resources.secrets, ref, "latest", never), undefined);
  code = 403;
  await assert.rejects(getObject(client, resources.secrets, ref, "latest", never), ApiError);
  code = 200;
  assert.equal((await getObject(client, resources.secrets, ref, "cached", never))?.metadata?.name, "a");
  assert.deepEqual(asked, [ref, {}, ref, {}, ref, { resourceVersion: "0" }]);
});

test("requestToken posts to the account's token", async () => {
  const client = {
    create: async (resource: unknown, object: unknown, body: object) => {
      assert.equal(resource, resources.serviceAccounts);
      assert.deepEqual(object, { namespace: "ns", name: "builder", subresource: "token" });
      return { ...body, status: { token: "t", expirationTimestamp: "2026-01-01T01:00:00Z" } };
    },
  } as never;
  const spec = { audiences: [], expirationSeconds: 3_607 };
  const answer = await requestToken(client, "ns", "builder", spec, never);
  assert.deepEqual(answer.spec, spec);
  assert.equal(answer.apiVersion, "authentication.k8s.io/v1");
  assert.equal(answer.status?.token, "t");
});
