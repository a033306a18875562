import assert from "node:assert/strict";
import { test } from "node:test";
import { generous, never } from "../../../test/support/client-lab.ts";
import { FakeApi } from "../../../test/support/fake-api.ts";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { readyRuntime, TestFacts, testNodeSettings } from "../../../test/support/node-facts.ts";
import { startLocalApi } from "../../beside/localapi/index.ts";
import { KubeClients, parseKubeconfig, resources } from "../../connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import type { Node } from "../../ground/model/index.ts";
import { CsiNodeKeeper } from "./csi-node/csi-node-keeper.ts";
import { NodeKeeper } from "./node-keeper.ts";
import { OwnNode } from "./own-node.ts";
import type { NodeSettings } from "./settings.ts";

interface World extends AsyncDisposable {
  readonly api: FakeApi;
  readonly clock: FakeClock;
  readonly facts: TestFacts;
  readonly own: OwnNode;
  readonly keeper: NodeKeeper;
  readonly events: string[];
  readonly scope: TaskScope;
  recoveries: number;
}

const nodeRef = { name: "node-1" };

async function start(prepare: (world: World) => void = () => {}, settings: Partial<NodeSettings> = {}): Promise<World> {
  const api = new FakeApi();
  const clock = new FakeClock();
  const facts = new TestFacts();
  const scope = new TaskScope();
  const events: string[] = [];
  const random = (): number => 0.5;
  const ports = { client: api as never, clock, log: silentLogger, random };
  const own = new OwnNode("node-1", ports);
  const world: World = {
    api,
    own,
    clock,
    facts,
    events,
    scope,
    recoveries: 0,
    keeper: new NodeKeeper(
      { ...testNodeSettings, ...settings },
      {
        own,
        csiNode: new CsiNodeKeeper("node-1", { ...ports, onNode: (node) => own.answered(node) }),
        clients: { main: api as never, heartbeat: api as never, resetHeartbeat: () => {} },
        facts,
        clock,
        log: silentLogger,
        random,
        recordEvent: ({ reason }) => events.push(reason),
        takePodCidrs: async () => false,
        onRecovered: () => world.recoveries++,
      },
    ),
    [Symbol.asyncDispose]: () => scope.stop(),
  };
  prepare(world);
  scope.spawn("node watch", (signal) => own.run(signal));
  world.keeper.start(scope);
  await clock.advance(0);
  return world;
}

function readyOf(node: Node | undefined): string | undefined {
  const condition = node?.status?.conditions?.find(({ type }) => type === "Ready");
  return condition === undefined ? undefined : `${condition.status}: ${condition.message}`;
}

test("a fresh node is ready without any time passing", async () => {
  await using world = await start();
  const { api, clock, events } = world;
  assert.equal(readyOf(api.object(resources.nodes, nodeRef)), "True: kubelet is posting ready status");
  assert.equal(clock.monotonic(), 0);
  assert.deepEqual(api.story.toSorted(), [
    "create kube-node-lease/leases",
    "create v1/csinodes",
    "create v1/nodes",
    "get csinodes/node-1",
    "get leases/node-1",
    "get leases/node-1",
    "patch nodes/node-1/status",
  ]);
  assert.deepEqual(events, [
    "Starting",
    "NodeHasSufficientMemory",
    "NodeHasNoDiskPressure",
    "NodeHasSufficientPID",
    "NodeReady",
  ]);
  assert.equal(
    api.object(resources.leases, { namespace: "kube-node-lease", name: "node-1" })?.spec?.holderIdentity,
    "node-1",
  );
});

test("a quiet node asks for little: its lease, and its status every five minutes", async () => {
  await using world = await start();
  const { api, clock } = world;
  await clock.advance(5 * 60_000);
  api.calls.length = 0;
  await clock.advance(10 * 60_000);
  const count = (word: string): number => api.story.filter((line) => line.includes(word)).length;
  assert.ok(count("leases") >= 57 && count("leases") <= 60, `${count("leases")} renewals in ten minutes`);
  assert.equal(count("patch nodes"), 2);
  assert.equal(count("get nodes"), 0);
});

test("a node whose runtime comes late is ready as soon as that is known", async () => {
  const waiting = "container runtime status check may not have completed yet";
  await using world = await start(({ facts }) => {
    facts.runtimeFacts = { ...readyRuntime, identity: undefined, problems: [waiting] };
  });
  const { api, clock, facts, keeper, events } = world;
  assert.equal(readyOf(api.object(resources.nodes, nodeRef)), `False: ${waiting}`);
  assert.equal(api.object(resources.nodes, nodeRef)?.status?.nodeInfo?.containerRuntimeVersion, "Unknown");
  await clock.advance(3_210);
  facts.runtimeFacts = readyRuntime;
  keeper.wake();
  await clock.advance(0);
  assert.equal(readyOf(api.object(resources.nodes, nodeRef)), "True: kubelet is posting ready status");
  assert.equal(clock.monotonic(), 3_210);
  assert.equal(events.filter((reason) => reason === "NodeReady").length, 1);
});

test("facts that flap are not reported as often as they do", async () => {
  await using world = await start();
  const { api, clock, facts, keeper } = world;
  await clock.advance(60_000);
  api.calls.length = 0;
  for (let count = 0; count < 600; count++) {
    facts.underPressure = { ...facts.underPressure, memory: count % 2 === 0 };
    keeper.wake();
    await clock.advance(100);
  }
  const reports = api.story.filter((line) => line.startsWith("patch nodes")).length;
  assert.ok(reports <= 45, `${reports} reports in a minute`);
});

test("after a restart the Node that is there is taken up, and never called unready on the way", async () => {
  await using first = await start();
  const before = first.api.object(resources.nodes, nodeRef);
  assert.ok(before);
  const seen: (string | undefined)[] = [];
  await using world = await start(({ api }) => {
    api.put(resources.nodes, nodeRef, before);
    api.trouble = ({ verb, path }) => {
      if (verb === "patch" && path.endsWith("/status"))
        queueMicrotask(() => seen.push(readyOf(api.object(resources.nodes, nodeRef))));
    };
  });
  await world.clock.advance(30_000);
  assert.deepEqual([...new Set(seen)], ["True: kubelet is posting ready status"]);
  assert.ok(!world.events.includes("NodeReady"));
  assert.ok(!world.events.includes("NodeNotReady"));
});

test("a Node that is deleted stays deleted, and costs no requests", async () => {
  await using world = await start();
  const { api, clock, own } = world;
  api.remove(resources.nodes, nodeRef);
  await clock.advance(0);
  assert.equal(own.node, undefined);
  api.calls.length = 0;
  await clock.advance(120_000);
  assert.equal(api.object(resources.nodes, nodeRef), undefined);
  assert.deepEqual(
    api.story.filter((line) => line.includes("nodes")),
    [],
  );
});

test("a Node that somebody makes anew is taken up: status, lease and CSINode are its own", async () => {
  await using world = await start();
  const { api, clock, own } = world;
  const old = api.object(resources.nodes, nodeRef);
  api.remove(resources.nodes, nodeRef);
  await clock.advance(1_000);
  api.put(resources.nodes, nodeRef, { metadata: { labels: { made: "by hand" } } });
  await clock.advance(0);
  const node = api.object(resources.nodes, nodeRef);
  assert.notEqual(node?.metadata?.uid, old?.metadata?.uid);
  assert.equal(readyOf(node), "True: kubelet is posting ready status");
  assert.equal(node?.metadata?.labels?.["made"], "by hand");
  assert.equal(own.node?.metadata?.uid, node?.metadata?.uid);
  const uid = node?.metadata?.uid;
  assert.equal(api.object(resources.csiNodes, nodeRef)?.metadata?.ownerReferences?.[0]?.uid, uid);
  const lease = api.object(resources.leases, { namespace: "kube-node-lease", name: "node-1" });
  assert.equal(lease?.metadata?.ownerReferences?.[0]?.uid, uid);
});

test("cordoning is told as soon as it is seen", async () => {
  await using world = await start();
  const { api, clock, events } = world;
  const node = api.object(resources.nodes, nodeRef);
  api.put(resources.nodes, nodeRef, { ...node, spec: { unschedulable: true } });
  await clock.advance(0);
  assert.equal(events.at(-1), "NodeNotSchedulable");
});

test("without registration only a Node that others made is kept", async () => {
  await using world = await start(() => {}, { register: false });
  const { api, clock } = world;
  await clock.advance(30_000);
  assert.equal(api.object(resources.nodes, nodeRef), undefined);
  api.put(resources.nodes, nodeRef, { metadata: {} });
  await clock.advance(0);
  assert.equal(readyOf(api.object(resources.nodes, nodeRef)), "True: kubelet is posting ready status");
});

test("an API server that comes late or goes away for minutes changes nothing but the delay", async () => {
  await using world = await start(({ api }) => {
    api.trouble = () => {
      throw new Error("connect ECONNREFUSED");
    };
  });
  const { api, clock, facts, keeper } = world;
  await clock.advance(120_000);
  const perMinute = (): number => {
    const { length } = api.calls;
    api.calls.length = 0;
    return length;
  };
  perMinute();
  await clock.advance(60_000);
  const whileAway = perMinute();
  assert.ok(whileAway <= 40, `${whileAway} requests in a minute`);
  api.trouble = () => {};
  await clock.advance(7_000);
  assert.equal(readyOf(api.object(resources.nodes, nodeRef)), "True: kubelet is posting ready status");

  await clock.advance(60_000);
  api.trouble = () => {
    throw new Error("connect ECONNREFUSED");
  };
  facts.underPressure = { memory: true, disk: false, pid: false };
  keeper.wake();
  await clock.advance(300_000);
  api.trouble = () => {};
  await clock.advance(10_400);
  assert.equal(world.recoveries, 2);
  const { conditions = [] } = api.object(resources.nodes, nodeRef)?.status ?? {};
  assert.equal(conditions.find(({ type }) => type === "MemoryPressure")?.status, "True");
});

test("stopping leaves nothing behind", async () => {
  const world = await start();
  await world.clock.advance(25_000);
  await world[Symbol.asyncDispose]();
  assert.equal(world.clock.pendingTimers, 0);
  assert.equal(world.scope.size, 0);
});

test("with the rights of a node, over HTTPS, against the local API server", async () => {
  await using scope = new TaskScope();
  const local = await startLocalApi({
    listen: { host: "127.0.0.1", port: 0 },
    clock: systemClock,
    log: silentLogger,
    scope,
  });
  const access = await parseKubeconfig(await local.nodeKubeconfig("node-1"), "kubeconfig");
  using clients = new KubeClients(access, generous, { clock: systemClock, log: silentLogger, environment: {} });
  const problems: unknown[] = [];
  await using loops = new TaskScope();
  const ports = { client: clients.main, clock: systemClock, log: silentLogger, random: Math.random };
  const own = new OwnNode("node-1", ports);
  const keeper = new NodeKeeper(testNodeSettings, {
    own,
    csiNode: new CsiNodeKeeper("node-1", { ...ports, onNode: (node) => own.answered(node) }),
    clients,
    facts: new TestFacts(),
    clock: systemClock,
    log: { ...silentLogger, error: (message, error) => problems.push(message, error) },
    random: Math.random,
    recordEvent: () => {},
    takePodCidrs: async () => false,
    onRecovered: () => {},
  });
  loops.spawn("node watch", (signal) => own.run(signal));
  keeper.start(loops);
  const giveUp = AbortSignal.timeout(20_000);
  const lease = async () =>
    clients.main.get(resources.leases, { namespace: "kube-node-lease", name: "node-1" }, {}, never);
  while (!readyOf(own.node)?.startsWith("True") || (await lease().catch(() => undefined)) === undefined) {
    giveUp.throwIfAborted();
    await systemClock.sleep(5, giveUp);
  }
  const node = await clients.main.get(resources.nodes, nodeRef, {}, never);
  assert.equal(readyOf(node), "True: kubelet is posting ready status");
  assert.deepEqual(node.status?.addresses, [
    { type: "InternalIP", address: "10.0.0.5" },
    { type: "Hostname", address: "node-1" },
  ]);
  const csiNode = await clients.main.get(resources.csiNodes, nodeRef, {}, never);
  assert.equal(csiNode.metadata?.ownerReferences?.[0]?.uid, node.metadata?.uid);
  assert.deepEqual(problems, []);
  await loops.stop();
  await local.stop();
});
