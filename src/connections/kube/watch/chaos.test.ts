import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import fc from "fast-check";
import type { Protocol, Reply } from "../../../../test/support/api-stand-in.ts";
import { ClientLab, generous, never } from "../../../../test/support/client-lab.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { FakeHistory, type Mood } from "../../../../test/support/fake-history.ts";
import { startLocalApi } from "../../../beside/localapi/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../../ground/base/index.ts";
import type { ConfigMap } from "../../../ground/model/index.ts";
import { parseKubeconfig } from "../access/index.ts";
import { KubeClients } from "../clients.ts";
import { resources } from "../resources.ts";
import { Informer, withoutManagedFields } from "./informer.ts";
import type { WatchClient } from "./list-watch.ts";
import type { CopyChange } from "./store.ts";

type Step =
  | { readonly do: "put"; readonly name: string; readonly data: string }
  | { readonly do: "remove"; readonly name: string }
  | { readonly do: "cut"; readonly bytes: number }
  | { readonly do: "garble"; readonly text: string }
  | { readonly do: "mood"; readonly mood: Mood }
  | { readonly do: "compact" | "end" | "stall" | "bookmark" | "setBack" }
  | { readonly do: "wait"; readonly ms: number };

const name = fc.constantFrom("a", "b", "c", "d");
const put = fc.record({ do: fc.constant("put" as const), name, data: fc.string({ maxLength: 40 }) });
const trouble: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("remove" as const), name }),
  fc.record({ do: fc.constant("cut" as const), bytes: fc.integer({ min: 0, max: 500 }) }),
  fc.record({
    do: fc.constant("garble" as const),
    text: fc.constantFrom("\n", "{\n", "null\n", '{"type":"ADDED"', "\u0000\n"),
  }),
  fc.record({ do: fc.constantFrom("compact" as const, "end" as const, "stall" as const, "bookmark" as const) }),
  fc.record({
    do: fc.constant("mood" as const),
    mood: fc.constantFrom<Mood>(
      { type: "well" },
      { type: "gone" },
      { type: "error", code: 500 },
      { type: "error", code: 410 },
      { type: "error", code: 429, retryAfterMs: 7_000 },
    ),
  }),
);
const wait = fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(0, 10, 700, 4_000, 45_000, 400_000) });
const steps = fc.array(
  fc.oneof({ weight: 4, arbitrary: put }, { weight: 4, arbitrary: trouble }, { weight: 3, arbitrary: wait }),
  {
    minLength: 5,
    maxLength: 60,
  },
);

async function carryOut(server: FakeHistory, clock: FakeClock, step: Step): Promise<void> {
  switch (step.do) {
    case "put":
      return server.put(step.name, step.data);
    case "remove":
      return server.remove(step.name);
    case "cut":
      return server.cutAfter(step.bytes);
    case "garble":
      return server.garble(step.text);
    case "mood":
      server.mood = step.mood;
      return;
    case "compact":
      return server.compact();
    case "end":
      return server.endWatches();
    case "stall":
      return server.stall();
    case "bookmark":
      return server.bookmark();
    case "setBack":
      return server.setBack();
    case "wait":
      return clock.advance(step.ms);
  }
}

/** The changes must be possible: nothing is added twice, nothing changes that is not there. */
class Replay {
  readonly objects = new Map<string, ConfigMap>();

  take(change: CopyChange<ConfigMap>): void {
    const key = change.object.metadata?.name ?? "";
    const known = this.objects.get(key);
    if (change.type === "added") assert.equal(known, undefined, `${key} was added twice`);
    else assert.notEqual(known, undefined, `${key} was ${change.type} but is not there`);
    if (change.type === "updated") {
      assert.equal(change.old, known);
      assert.equal(change.object.metadata?.uid, known?.metadata?.uid, `${key} is another object`);
    }
    if (change.type === "deleted") this.objects.delete(key);
    else this.objects.set(key, change.object);
  }
}

test("whatever happens, in the end the copy is right, and the server was never hammered", async () => {
  await fc.assert(
    fc.asyncProperty(steps, fc.integer({ min: 1, max: 1_000_000 }), async (plan, seed) => {
      const clock = new FakeClock();
      const server = new FakeHistory(() => clock.monotonic());
      await using scope = new TaskScope();
      let random = seed;
      const informer = new Informer<ConfigMap>(
        { resource: resources.configMaps, keep: withoutManagedFields },
        {
          client: server as unknown as WatchClient,
          clock,
          log: silentLogger,
          random: () => {
            random = (random * 48_271) % 2_147_483_647;
            return random / 2_147_483_647;
          },
        },
      );
      const replay = new Replay();
      informer.onChange((change) => replay.take(change));
      scope.spawn("informer", (signal) => informer.run(signal));
      for (const step of plan) await carryOut(server, clock, step);
      server.mood = { type: "well" };
      await clock.advance(660_000);
      assert.equal(scope.signal.aborted, false, String(scope.signal.reason));
      const truth = server.state().map(withoutManagedFields);
      const byName = (a: ConfigMap, b: ConfigMap): number =>
        (a.metadata?.name ?? "").localeCompare(b.metadata?.name ?? "");
      assert.deepEqual([...informer.list()].sort(byName), truth);
      assert.deepEqual([...replay.objects.values()].sort(byName), truth);
      const asked = [...server.lists, ...server.watches].sort((a, b) => a - b);
      // Each of 25 requests in a row must have taken its ten seconds.
      for (let index = 25; index < asked.length; index++) {
        const window = (asked[index] ?? 0) - (asked[index - 25] ?? 0);
        assert.ok(window >= 10_000, `25 requests in ${window} ms`);
      }
    }),
    { numRuns: 150 },
  );
});

describe("over real connections", () => {
  let lab: ClientLab;
  before(() => {
    lab = new ClientLab();
  });
  after(() => lab.remove());

  for (const protocol of ["h2", "https/1.1"] as const satisfies readonly Protocol[]) {
    test(`${protocol}: a watch cut at any byte misses nothing`, async () => {
      const clock = new FakeClock();
      await using server = await lab.server(protocol);
      const events = Array.from({ length: 24 }, (_, index) => {
        const version = String(101 + index);
        const metadata = { namespace: "ns", name: `é${index % 3}`, uid: `u${index % 3}`, resourceVersion: version };
        return `${JSON.stringify({ type: index < 3 ? "ADDED" : "MODIFIED", object: { metadata, data: { n: version } } })}\n`;
      });
      server.script = ({ query }, reply) => {
        if (query.get("watch") !== "true") return reply.json({ metadata: { resourceVersion: "100" }, items: [] });
        const from = Number(query.get("resourceVersion")) - 100;
        return sendAndCut(reply, events.slice(from), from);
      };
      using clients = await lab.clients(server.url, { clock });
      await using scope = new TaskScope();
      const informer = new Informer<ConfigMap>(
        { resource: resources.configMaps, keep: withoutManagedFields },
        { client: clients.main, clock, log: silentLogger, random: () => 0.5 },
      );
      const seen: string[] = [];
      informer.onChange(({ object }) => seen.push(object.data?.["n"] ?? ""));
      scope.spawn("informer", (signal) => informer.run(signal));
      const giveUp = AbortSignal.timeout(60_000);
      while (seen.length < events.length && !giveUp.aborted) {
        await clock.advance(500);
        await systemClock.sleep(2, giveUp);
      }
      assert.deepEqual(
        seen,
        events.map((_, index) => String(101 + index)),
      );
    });
  }

  test("a half-open connection is found out and replaced", async () => {
    const clock = new FakeClock();
    await using server = await lab.server("https/1.1");
    let watches = 0;
    server.script = ({ query }, reply) => {
      if (query.get("watch") !== "true") return reply.json({ metadata: { resourceVersion: "1" }, items: [] });
      reply.status(200);
      // The first watch opens and then never says a word.
      if (++watches === 1) return;
      reply.write(`${JSON.stringify({ type: "ADDED", object: { metadata: { name: "a", resourceVersion: "2" } } })}\n`);
    };
    using clients = await lab.clients(server.url, { clock });
    await using scope = new TaskScope();
    const informer = new Informer<ConfigMap>(
      { resource: resources.configMaps, keep: withoutManagedFields },
      { client: clients.main, clock, log: silentLogger, random: () => 0.5 },
    );
    scope.spawn("informer", (signal) => informer.run(signal));
    const giveUp = AbortSignal.timeout(60_000);
    while (informer.size === 0) {
      await clock.advance(1_000);
      await systemClock.sleep(2, giveUp);
    }
    assert.ok(clock.monotonic() < 200_000, `took ${clock.monotonic()} ms`);
  });
});

test("the local API server: connections dropped and history forgotten while objects change", async () => {
  const clock = new FakeClock();
  await using scope = new TaskScope();
  const listen = { host: "127.0.0.1", port: 0 };
  const local = await startLocalApi({ listen, clock: systemClock, log: silentLogger, scope });
  const access = await parseKubeconfig(await local.adminKubeconfig(), "kubeconfig");
  using writer = new KubeClients(access, generous, { clock: systemClock, log: silentLogger, environment: {} });
  using reader = new KubeClients(access, generous, { clock, log: silentLogger, environment: {} });
  await using loops = new TaskScope();
  const informer = new Informer<ConfigMap>(
    { resource: resources.configMaps, namespace: "default", labelSelector: "mine=yes", keep: withoutManagedFields },
    { client: reader.main, clock, log: silentLogger, random: () => 0.5 },
  );
  const replay = new Replay();
  informer.onChange((change) => replay.take(change));
  loops.spawn("informer", (signal) => informer.run(signal));
  const truth = new Map<string, string>();
  const write = async (round: number): Promise<void> => {
    const name = `m${round % 5}`;
    const object = { metadata: { name, labels: { mine: "yes" } }, data: { round: String(round) } };
    const ref = { namespace: "default", name };
    if (!truth.has(name)) await writer.main.create(resources.configMaps, { namespace: "default" }, object, never);
    else if (round % 3 === 0) {
      await writer.main.delete(resources.configMaps, ref, {}, never);
      truth.delete(name);
      return;
    } else await writer.main.patch(resources.configMaps, ref, { type: "merge", body: { data: object.data } }, never);
    truth.set(name, String(round));
  };
  const breathe = async (ms: number): Promise<void> => {
    await clock.advance(ms);
    await systemClock.sleep(5, never);
  };
  for (let round = 0; round < 60; round++) {
    await write(round);
    if (round % 7 === 3) local.dropConnections();
    if (round % 11 === 5) local.compact();
    await breathe(round % 4 === 0 ? 1_000 : 0);
  }
  const giveUp = AbortSignal.timeout(30_000);
  const copy = (): string =>
    JSON.stringify(
      informer
        .list()
        .map(({ metadata, data }) => [metadata?.name, data?.["round"]])
        .sort(),
    );
  const expected = JSON.stringify([...truth].sort());
  while (copy() !== expected && !giveUp.aborted) await breathe(500);
  assert.equal(copy(), expected);
  assert.equal(replay.objects.size, truth.size);
  assert.equal(loops.signal.aborted, false, String(loops.signal.reason));
  await loops.stop();
  await local.stop();
});

/** Sends in small pieces, cuts somewhere in the middle of the second event. */
async function sendAndCut(reply: Reply, lines: readonly string[], from: number): Promise<void> {
  reply.status(200);
  const [first = "", second = ""] = lines;
  const bytes = Buffer.from(first + second);
  const end = Buffer.byteLength(first) + Math.floor((Buffer.byteLength(second) * (from % 24)) / 24);
  const middle = Math.floor(end / 2);
  reply.write(bytes.subarray(0, middle));
  await systemClock.sleep(1, new AbortController().signal);
  reply.write(bytes.subarray(middle, end));
  await systemClock.sleep(5, new AbortController().signal);
  if (lines.length > 1) reply.cut();
}
