import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../../test/support/fake-clock.ts";
import { FakeHistory } from "../../../../test/support/fake-history.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import type { ConfigMap } from "../../../ground/model/index.ts";
import { resources } from "../resources.ts";
import { Informer, withoutManagedFields } from "./informer.ts";
import type { WatchClient } from "./list-watch.ts";
import type { CopyChange } from "./store.ts";

interface World extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly server: FakeHistory;
  readonly informer: Informer<ConfigMap>;
  /** Changes as short texts: `+a=1`, `a=1>2`, `-a`. */
  readonly told: string[];
}

async function start(
  prepare: (server: FakeHistory) => void = () => {},
  watchSeconds?: [number, number],
): Promise<World> {
  const clock = new FakeClock();
  const server = new FakeHistory(() => clock.monotonic());
  prepare(server);
  const scope = new TaskScope();
  const informer = new Informer<ConfigMap>(
    { resource: resources.configMaps, keep: withoutManagedFields, watchSeconds },
    { client: server as unknown as WatchClient, clock, log: silentLogger, random: () => 0.5 },
  );
  const told: string[] = [];
  informer.onChange((change) => told.push(shortly(change)));
  scope.spawn("informer", (signal) => informer.run(signal));
  await clock.advance(0);
  return { clock, server, informer, told, [Symbol.asyncDispose]: () => scope.stop() };
}

function shortly(change: CopyChange<ConfigMap>): string {
  const show = ({ metadata, data }: ConfigMap): string => `${metadata?.name}=${data?.["data"]}`;
  switch (change.type) {
    case "added":
      return `+${show(change.object)}`;
    case "updated":
      return `${show(change.old)}>${change.object.data?.["data"]}`;
    case "deleted":
      return `-${change.object.metadata?.name}`;
  }
}

function namesOf(informer: Informer<ConfigMap>): readonly string[] {
  return informer
    .list()
    .map(({ metadata, data }) => `${metadata?.name}=${data?.["data"]}`)
    .sort();
}

test("what is there is told first, then every change", async () => {
  await using world = await start((server) => server.put("a", "1"));
  const { server, informer, told } = world;
  assert.equal(informer.hasSynced, true);
  server.put("b", "1");
  server.put("a", "2");
  server.remove("b");
  await settle();
  assert.deepEqual(told, ["+a=1", "+b=1", "a=1>2", "-b"]);
  assert.deepEqual(namesOf(informer), ["a=2"]);
  assert.equal(informer.get("ns", "a")?.metadata?.managedFields, undefined);
  assert.deepEqual([server.lists.length, server.watches.length], [1, 1]);
});

test("synced waits for the first complete list", async () => {
  await using world = await start((server) => {
    server.mood = { type: "gone" };
  });
  const { clock, server, informer } = world;
  let synced = false;
  const waiting = informer.synced(new AbortController().signal).then(() => {
    synced = true;
  });
  const impatient = new AbortController();
  const left = informer.synced(impatient.signal).catch((error) => error.message);
  impatient.abort(new Error("no time"));
  assert.equal(await left, "no time");
  await clock.advance(10_000);
  assert.equal(synced, false);
  assert.match(informer.problem ?? "", /ECONNREFUSED/);
  server.mood = { type: "well" };
  await clock.advance(60_000);
  await waiting;
  assert.equal(informer.problem, undefined);
});

test("a list of many pages arrives whole", async () => {
  await using world = await start((server) => {
    for (let index = 0; index < 1_201; index++) server.put(`m${String(index).padStart(4, "0")}`, "1");
  });
  assert.equal(world.informer.size, 1_201);
  assert.equal(world.server.lists.length, 3);
});

test("a server that forgets between two pages is asked for all at once", async () => {
  const clock = new FakeClock();
  const server = new FakeHistory(() => clock.monotonic());
  for (let index = 0; index < 700; index++) server.put(`m${index}`, "1");
  const list = server.list.bind(server);
  server.list = async (...args) => {
    const page = await list(...args);
    if (server.lists.length === 1) {
      server.remove("m5");
      server.compact();
    }
    return page;
  };
  const scope = new TaskScope();
  const informer = new Informer<ConfigMap>(
    { resource: resources.configMaps, keep: withoutManagedFields },
    { client: server as unknown as WatchClient, clock, log: silentLogger, random: () => 0.5 },
  );
  scope.spawn("informer", (signal) => informer.run(signal));
  await clock.advance(0);
  assert.equal(informer.size, 699);
  assert.equal(server.lists.length, 3);
  await scope.stop();
});

test("keep decides what is held and told", async () => {
  const clock = new FakeClock();
  const server = new FakeHistory(() => clock.monotonic());
  server.put("a", "small");
  server.put("b", "LARGE");
  await using scope = new TaskScope();
  const informer = new Informer<ConfigMap, string>(
    {
      resource: resources.configMaps,
      keep: ({ data }) => (data?.["data"] === "LARGE" ? undefined : data?.["data"]),
    },
    { client: server as unknown as WatchClient, clock, log: silentLogger, random: () => 0.5 },
  );
  const told: string[] = [];
  informer.onChange((change) => told.push(`${change.type} ${change.object}`));
  scope.spawn("informer", (signal) => informer.run(signal));
  await clock.advance(0);
  server.put("b", "little");
  server.put("a", "LARGE");
  await settle();
  assert.deepEqual(told, ["added small", "added little", "deleted small"]);
  assert.deepEqual(informer.list(), ["little"]);
});

test("410 leads to a new list, and what was missed meanwhile is told", async () => {
  await using world = await start((server) => {
    server.put("stays", "1");
    server.put("goes", "1");
    server.put("changes", "1");
    server.put("reborn", "1");
  });
  const { clock, server, told } = world;
  await clock.advance(60_000);
  told.length = 0;
  server.stall();
  server.remove("goes");
  server.put("changes", "2");
  server.remove("reborn");
  server.put("reborn", "1");
  server.put("new", "1");
  server.compact();
  await clock.advance(200_000);
  assert.deepEqual([...told].sort(), ["+new=1", "+reborn=1", "-goes", "-reborn", "changes=1>2"]);
  assert.ok(told.indexOf("-reborn") < told.indexOf("+reborn=1"));
});

test("an object born again under the same name is told as two, also by a single event", async () => {
  await using world = await start((server) => server.put("a", "1"));
  const { server, told, clock } = world;
  server.cutAfter(0);
  server.remove("a");
  server.put("a", "2");
  await clock.advance(5_000);
  assert.deepEqual(told, ["+a=1", "-a", "+a=2"]);
});

test("a server set back to an older state is listed anew instead of waited for", async () => {
  await using world = await start((server) => {
    for (let count = 0; count < 20; count++) server.put("a", String(count));
  });
  const { clock, server, informer } = world;
  server.remove("a");
  await settle();
  let lists = 0;
  const stop = informer.onListed(() => lists++);
  server.endWatches();
  server.setBack();
  server.put("b", "1");
  await clock.advance(60_000);
  assert.deepEqual(namesOf(informer), ["b=1"]);
  assert.equal(lists, 1);
  stop();
});

test("a watch whose time is up is renewed without a list", async () => {
  await using world = await start();
  const { clock, server, told } = world;
  for (let round = 0; round < 4; round++) {
    for (let minute = 0; minute < 7; minute++) {
      await clock.advance(60_000);
      server.bookmark();
      await settle();
    }
    server.put("a", String(round));
    server.endWatches();
    await settle();
  }
  assert.deepEqual(told, ["+a=0", "a=0>1", "a=1>2", "a=2>3"]);
  assert.deepEqual([server.lists.length, server.watches.length], [1, 5]);
});

test("bookmarks move the place to go on from, so that a compaction does no harm", async () => {
  await using world = await start();
  const { clock, server, told } = world;
  for (let count = 0; count < 5; count++) server.put("a", String(count));
  await settle();
  server.bookmark();
  await clock.advance(30_000);
  server.compact();
  server.endWatches();
  server.put("a", "later");
  await clock.advance(1_000);
  assert.equal(told.at(-1), "a=4>later");
  assert.equal(server.lists.length, 1);
});

test("a stalled watch is replaced after two and a half minutes where bookmarks come", async () => {
  await using world = await start();
  const { clock, server, told } = world;
  for (let minute = 0; minute < 3; minute++) {
    await clock.advance(60_000);
    server.bookmark();
  }
  await clock.advance(0);
  server.stall();
  server.put("a", "1");
  await clock.advance(149_000);
  assert.deepEqual(told, []);
  await clock.advance(1_000);
  assert.deepEqual(told, ["+a=1"]);
  assert.deepEqual([server.lists.length, server.watches.length], [1, 2]);
});

test("a server without bookmarks is not asked again and again", async () => {
  await using world = await start((server) => {
    server.sendsBookmarks = false;
  });
  const { clock, server, told } = world;
  await clock.advance(3_600_000);
  // Twice at 150 s to find out, then when the time of the watch (450 s here) is well over.
  assert.equal(server.watches.length, 1 + 2 + Math.floor((3_600 - 300) / 480));
  server.put("a", "1");
  await settle();
  assert.deepEqual(told, ["+a=1"]);
});

test("garbage is not believed, and gone around when it stays", async () => {
  await using world = await start();
  const { clock, server, informer, told } = world;
  for (const garbage of [
    "{]\n",
    '{"type":"ADDED"}\n',
    '{"type":"EATEN","object":{}}\n',
    '{"type":"ADDED","object":{}}\n',
  ]) {
    server.garble(garbage);
    await clock.advance(5_000);
    assert.equal(server.openWatches, 1, garbage);
  }
  assert.equal(informer.size, 0);
  server.put("a", "1");
  await settle();
  assert.deepEqual(told, ["+a=1"]);
  const { lists } = server;
  const before = lists.length;
  const open = server.openWatch.bind(server);
  server.openWatch = async (...args) => {
    const response = await open(...args);
    if (server.lists.length === before) server.garble("nonsense\n");
    return response;
  };
  server.endWatches();
  await clock.advance(30_000);
  assert.equal(lists.length, before + 1);
  assert.equal(server.openWatches, 1);
});

test("an error event in the watch is taken as what it says", async () => {
  await using world = await start();
  const { clock, server, told } = world;
  const status = (code: number): string =>
    `${JSON.stringify({ type: "ERROR", object: { kind: "Status", code, reason: code === 410 ? "Expired" : "InternalError" } })}\n`;
  server.garble(status(500));
  server.put("a", "1");
  await clock.advance(5_000);
  assert.deepEqual([told, server.lists.length], [["+a=1"], 1]);
  server.garble(status(410));
  await clock.advance(5_000);
  assert.equal(server.lists.length, 2);
  server.put("a", "2");
  await settle();
  assert.deepEqual(told, ["+a=1", "a=1>2"]);
});

for (const mood of [
  { type: "gone" },
  { type: "error", code: 500 },
  { type: "error", code: 403 },
  { type: "mute" },
] as const) {
  test(`ten minutes of ${JSON.stringify(mood)}: few requests, and nothing missed`, async () => {
    await using world = await start((server) => server.put("a", "1"));
    const { clock, server, told, informer } = world;
    await clock.advance(10_000);
    const askedBefore = server.lists.length + server.watches.length;
    server.mood = mood;
    server.cutAfter(0);
    for (let minute = 0; minute < 10; minute++) {
      server.put("a", `${minute + 2}`);
      for (let step = 0; step < 600; step++) {
        await clock.advance(100);
        if (mood.type === "mute" && step % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
      }
    }
    const asked = server.lists.length + server.watches.length - askedBefore;
    assert.ok(asked >= 8 && asked <= 25, `${asked} requests in ten minutes`);
    assert.notEqual(informer.problem, undefined);
    server.mood = { type: "well" };
    await clock.advance(60_000);
    assert.deepEqual(namesOf(informer), ["a=11"]);
    assert.equal(told.at(-1)?.endsWith(">11"), true);
  });
}

test("Retry-After is respected", async () => {
  await using world = await start((server) => {
    server.mood = { type: "error", code: 429, retryAfterMs: 20_000 };
  });
  const { clock, server } = world;
  await clock.advance(100_000);
  assert.ok(server.lists.length <= 6, `${server.lists.length} lists`);
  for (let index = 1; index < server.lists.length; index++) {
    assert.ok((server.lists[index] ?? 0) - (server.lists[index - 1] ?? 0) >= 20_000);
  }
});

test("watches that end at once are not asked for in a loop", async () => {
  await using world = await start();
  const { clock, server } = world;
  const open = server.openWatch.bind(server);
  server.openWatch = async (...args) => {
    const response = await open(...args);
    setImmediate(() => server.endWatches());
    return response;
  };
  server.endWatches();
  await clock.advance(300_000);
  assert.ok(server.watches.length <= 20, `${server.watches.length} watches in five minutes`);
});

test("watches that bring one event and break are followed at a steady pace", async () => {
  await using world = await start();
  const { clock, server, informer } = world;
  for (let count = 0; count < 100; count++) {
    server.put("a", String(count));
    await settle();
    server.cutAfter(0);
    await clock.advance(1_000);
  }
  assert.deepEqual(namesOf(informer), ["a=99"]);
  assert.ok(server.watches.length <= 150, `${server.watches.length} watches in 100 s`);
  assert.equal(server.lists.length, 1);
});

test("hasten cuts the wait short", async () => {
  await using world = await start();
  const { clock, server, informer, told } = world;
  server.mood = { type: "gone" };
  server.cutAfter(0);
  await clock.advance(120_000);
  server.mood = { type: "well" };
  server.put("a", "1");
  informer.hasten();
  await settle();
  assert.deepEqual(told, ["+a=1"]);
});

test("stopping leaves no timer and no open watch", async () => {
  const world = await start();
  await world.clock.advance(10_000);
  await world[Symbol.asyncDispose]();
  assert.equal(world.clock.pendingTimers, 0);
  assert.equal(world.server.openWatches, 0);
});
