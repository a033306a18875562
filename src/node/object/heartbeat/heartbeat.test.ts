import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeApi, refusal } from "../../../../test/support/fake-api.ts";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { resources } from "../../../connections/kube/index.ts";
import { silentLogger, TaskScope } from "../../../ground/base/index.ts";
import type { Node } from "../../../ground/model/index.ts";
import { LeaseKeeper } from "./lease.ts";
import { StatusReporter } from "./status-reporter.ts";

const leaseRef = { namespace: "kube-node-lease", name: "node-1" };

interface LeaseWorld extends AsyncDisposable {
  readonly api: FakeApi;
  readonly clock: FakeClock;
  readonly keeper: LeaseKeeper;
  node: Node | undefined;
  resets: number;
  recoveries: number;
}

function startLease(prepare: (api: FakeApi) => void = () => {}): LeaseWorld {
  const api = new FakeApi();
  prepare(api);
  const clock = new FakeClock();
  const scope = new TaskScope();
  const world: LeaseWorld = {
    api,
    clock,
    node: { metadata: { name: "node-1", uid: "u1" } },
    resets: 0,
    recoveries: 0,
    keeper: new LeaseKeeper(
      { nodeName: "node-1", leaseSeconds: 40 },
      {
        client: api as never,
        resetConnection: () => world.resets++,
        clock,
        log: silentLogger,
        random: () => 0,
        node: async () => world.node,
        onRecovered: () => world.recoveries++,
      },
    ),
    [Symbol.asyncDispose]: () => scope.stop(),
  };
  scope.spawn("lease", (signal) => world.keeper.run(signal));
  return world;
}

describe("lease", () => {
  test("is made at once and renewed every quarter of its length without being read", async () => {
    await using world = startLease();
    const { api, clock } = world;
    await clock.advance(0);
    const made = api.object(resources.leases, leaseRef);
    assert.deepEqual(made?.spec, {
      holderIdentity: "node-1",
      leaseDurationSeconds: 40,
      renewTime: "2026-01-01T00:00:00.000000Z",
    });
    assert.deepEqual(made?.metadata?.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: "node-1", uid: "u1" }]);
    await clock.advance(30_000);
    assert.deepEqual(api.story, [
      "get leases/node-1",
      "create kube-node-lease/leases",
      "update leases/node-1",
      "update leases/node-1",
      "update leases/node-1",
    ]);
    assert.equal(api.object(resources.leases, leaseRef)?.spec?.renewTime, "2026-01-01T00:00:30.000000Z");
  });

  test("one that is there is renewed at once", async () => {
    const found = { spec: { holderIdentity: "somebody", acquireTime: "x" } };
    await using world = startLease((api) => void api.put(resources.leases, leaseRef, found));
    await world.clock.advance(0);
    assert.deepEqual(world.api.story, ["get leases/node-1", "update leases/node-1"]);
    assert.deepEqual(world.api.object(resources.leases, leaseRef)?.spec, {
      holderIdentity: "node-1",
      acquireTime: "x",
      leaseDurationSeconds: 40,
      renewTime: "2026-01-01T00:00:00.000000Z",
    });
  });

  test("waits for a Node to own it, and is made as soon as there is one", async () => {
    await using world = startLease();
    world.node = undefined;
    await world.clock.advance(5_000);
    assert.equal(world.api.object(resources.leases, leaseRef), undefined);
    world.node = { metadata: { name: "node-1", uid: "u9" } };
    world.keeper.hasten();
    await world.clock.advance(0);
    assert.equal(world.api.object(resources.leases, leaseRef)?.metadata?.ownerReferences?.[0]?.uid, "u9");
  });

  test("passes to a Node that was made anew", async () => {
    await using world = startLease();
    await world.clock.advance(0);
    world.node = { metadata: { name: "node-1", uid: "u2" } };
    await world.clock.advance(10_000);
    assert.equal(world.api.object(resources.leases, leaseRef)?.metadata?.ownerReferences?.[0]?.uid, "u2");
  });

  test("a conflict is solved by reading", async () => {
    await using world = startLease();
    const { api, clock } = world;
    await clock.advance(0);
    const known = api.object(resources.leases, leaseRef);
    api.put(resources.leases, leaseRef, { ...known, spec: { ...known?.spec, holderIdentity: "thief" } });
    await clock.advance(10_000);
    assert.equal(api.object(resources.leases, leaseRef)?.spec?.holderIdentity, "node-1");
    assert.deepEqual(api.story.slice(2), ["update leases/node-1", "get leases/node-1", "update leases/node-1"]);
    assert.equal(world.resets, 0);
  });

  test("one that is gone is made again", async () => {
    await using world = startLease();
    const { api, clock } = world;
    await clock.advance(0);
    api.remove(resources.leases, leaseRef);
    await clock.advance(10_000);
    assert.notEqual(api.object(resources.leases, leaseRef), undefined);
    assert.deepEqual(api.story.slice(2), [
      "update leases/node-1",
      "get leases/node-1",
      "get leases/node-1",
      "create kube-node-lease/leases",
    ]);
  });

  test("five tries, then it looks for the lease at growing intervals; connections are reset from the second failure", async () => {
    await using world = startLease();
    const { api, clock } = world;
    await clock.advance(0);
    api.calls.length = 0;
    const gets: number[] = [];
    api.trouble = ({ verb }) => {
      if (verb === "get") gets.push(clock.monotonic());
      throw new Error("timed out");
    };
    await clock.advance(10_000);
    assert.deepEqual(api.story, [...Array(5).fill("update leases/node-1"), "get leases/node-1"]);
    assert.equal(world.resets, 4);
    await clock.advance(40_000);
    const waits = gets.slice(1).map((time, index) => time - (gets[index] ?? 0));
    assert.deepEqual(waits, [200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000, 7_000]);
    assert.equal(world.recoveries, 0);
    api.trouble = () => {};
    await clock.advance(7_000);
    assert.equal(world.recoveries, 1);
    assert.equal(api.object(resources.leases, leaseRef)?.spec?.renewTime, "2026-01-01T00:00:50.600000Z");
  });
});

interface ReportWorld {
  readonly api: FakeApi;
  readonly clock: FakeClock;
  readonly reporter: StatusReporter;
  readonly reports: () => number;
  message: string;
  known: Node | undefined;
  resets: number;
  cidrs: string[];
}

interface LaterStatus {
  declaredFeatures?: readonly string[];
}

/** `drops`: the server has no word for what a later node declares. */
function startReporter(random = 0.5, drops?: { now: boolean }): ReportWorld {
  const api = new FakeApi();
  const client: Pick<FakeApi, "get" | "patch"> = {
    get: (...asked) => api.get(...asked),
    patch: async (...asked) => {
      const stored = await api.patch(...asked);
      const { status } = stored as { readonly status?: LaterStatus };
      if (drops?.now) delete status?.declaredFeatures;
      return stored as never;
    },
  };
  const clock = new FakeClock();
  const world: ReportWorld = {
    api,
    clock,
    message: "well",
    known: api.put(resources.nodes, { name: "node-1" }, { metadata: {}, status: {} }),
    resets: 0,
    cidrs: [],
    reports: () => api.calls.filter(({ verb }) => verb === "patch").length,
    reporter: new StatusReporter(
      { nodeName: "node-1", reportEveryMs: 300_000 },
      {
        client: client as never,
        resetConnection: () => world.resets++,
        clock,
        log: silentLogger,
        random: () => random,
        known: () => world.known,
        compute: async (node) => ({
          ...node,
          status: {
            ...(drops === undefined ? {} : { declaredFeatures: ["A"] }),
            conditions: [
              { type: "Ready", status: "True", message: world.message, lastHeartbeatTime: String(clock.now()) },
            ],
          },
        }),
        takePodCidrs: async (cidrs) => {
          const changed = cidrs.join() !== world.cidrs.join();
          world.cidrs = [...cidrs];
          return changed;
        },
        onReported: (node) => {
          world.known = node;
        },
      },
    ),
  };
  return world;
}

const never = new AbortController().signal;

describe("status reports", () => {
  /** Syncs every ten seconds and says at which seconds a report was sent. */
  async function reportsOver(world: ReportWorld, seconds: number): Promise<readonly number[]> {
    const times: number[] = [];
    const end = world.clock.monotonic() + seconds * 1_000;
    while (world.clock.monotonic() <= end) {
      const before = world.reports();
      await world.reporter.sync(never);
      if (world.reports() > before) times.push(world.clock.monotonic() / 1_000);
      await world.clock.advance(10_000);
    }
    return times;
  }

  test("the first at once, then every five minutes while nothing changes", async () => {
    assert.deepEqual(await reportsOver(startReporter(0.5), 1_000), [0, 300, 600, 900]);
  });

  for (const { random, expected } of [
    { random: 0, expected: [0, 150, 450] },
    { random: 1, expected: [0, 450] },
  ]) {
    test(`after a change the next may come up to half a period sooner or later (${random})`, async () => {
      assert.deepEqual(await reportsOver(startReporter(random), 600), expected);
    });
  }

  test("a change is reported at once", async () => {
    const world = startReporter();
    await reportsOver(world, 30);
    world.message = "other";
    assert.deepEqual(await reportsOver(world, 30), [40]);
    const patch = world.api.calls.at(-1)?.body as { status: { conditions: object[] } };
    assert.equal(patch.status.conditions.length, 1);
  });

  test("what the server does not keep is said again with each report, and is no reason for one", async () => {
    const drops = { now: true };
    const world = startReporter(0.5, drops);
    assert.deepEqual(await reportsOver(world, 500), [0, 300]);
    world.message = "other";
    assert.deepEqual(await reportsOver(world, 30), [510], "others are");
    world.known = { ...world.known, status: { conditions: [] } };
    assert.deepEqual(await reportsOver(world, 30), [550], "so is what somebody else has made of it");
    drops.now = false;
    assert.deepEqual(await reportsOver(world, 400), [850], "a later server is told with the next report");
    assert.deepEqual((world.known?.status as LaterStatus | undefined)?.declaredFeatures, ["A"]);
  });

  test("new pod networks are taken and reported", async () => {
    const world = startReporter();
    await world.reporter.sync(never);
    world.known = world.api.put(
      resources.nodes,
      { name: "node-1" },
      { ...world.known, spec: { podCIDRs: ["10.1.0.0/24"] } },
    );
    await world.reporter.sync(never);
    assert.deepEqual(world.cidrs, ["10.1.0.0/24"]);
    assert.equal(world.reports(), 2);
    await world.reporter.sync(never);
    assert.equal(world.reports(), 2);
  });

  test("reset makes the next one due", async () => {
    const world = startReporter();
    await world.reporter.sync(never);
    world.reporter.reset();
    await world.reporter.sync(never);
    assert.equal(world.reports(), 2);
  });

  test("without a Node from the watch, the first try asks the server for what it has at hand", async () => {
    const world = startReporter();
    world.known = undefined;
    await world.reporter.sync(never);
    const [get] = world.api.calls;
    assert.deepEqual([get?.verb, get?.options], ["get", { resourceVersion: "0" }]);
  });

  test("a failure is followed by four tries that read afresh, and resets from the second on", async () => {
    const world = startReporter();
    world.api.trouble = ({ verb }) => {
      if (verb === "patch") throw refusal(500, "InternalError", "patch");
    };
    await world.reporter.sync(never);
    assert.deepEqual(world.api.story, [
      "patch nodes/node-1/status",
      ...Array.from({ length: 4 }, () => ["get nodes/node-1", "patch nodes/node-1/status"]).flat(),
    ]);
    assert.deepEqual(world.api.calls[1]?.options, {});
    assert.equal(world.resets, 4);
  });
});
