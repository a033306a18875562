// The contract with clouds, over HTTPS against the local API server; with NODELET_CLUSTER=DIR against the real one whose
// admin.kubeconfig and node.kubeconfig (of test-node) are there.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { eventually } from "../../../test/support/agent.ts";
import { generous, never } from "../../../test/support/client-lab.ts";
import { FakeCloudController } from "../../../test/support/fake-cloud-controller.ts";
import { TestFacts, testNodeSettings } from "../../../test/support/node-facts.ts";
import { startLocalApi } from "../../beside/localapi/index.ts";
import { KubeClients, parseKubeconfig, resources } from "../../connections/kube/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import type { Node } from "../../ground/model/index.ts";
import { CsiNodeKeeper } from "./csi-node/csi-node-keeper.ts";
import { NodeKeeper } from "./node-keeper.ts";
import { OwnNode } from "./own-node.ts";
import type { CloudFacts } from "./ports.ts";
import type { NodeSettings } from "./settings.ts";

const nodeName = "test-node";
const cluster = process.env["NODELET_CLUSTER"];
const scope = new TaskScope();
let stopLocal: (() => Promise<void>) | undefined;
let admin: KubeClients;
let asNode: KubeClients;

before(async () => {
  const read = async (kind: "admin" | "node"): Promise<string> =>
    readFile(join(cluster ?? "", `${kind}.kubeconfig`), "utf8");
  const local = cluster === undefined ? await startLocal() : undefined;
  stopLocal = local && (() => local.stop());
  admin = await clientsOf((await local?.adminKubeconfig()) ?? (await read("admin")));
  asNode = await clientsOf((await local?.nodeKubeconfig(nodeName)) ?? (await read("node")));
});
after(async () => {
  await stopLocal?.();
  admin?.[Symbol.dispose]();
  asNode?.[Symbol.dispose]();
  await scope.stop();
});

function startLocal() {
  return startLocalApi({ listen: { host: "127.0.0.1", port: 0 }, clock: systemClock, log: silentLogger, scope });
}

async function clientsOf(kubeconfig: string): Promise<KubeClients> {
  const access = await parseKubeconfig(kubeconfig, "kubeconfig");
  return new KubeClients(access, generous, { clock: systemClock, log: silentLogger, environment: {} });
}

const node = (): Promise<Node> => admin.main.get(resources.nodes, { name: nodeName }, {}, never);

const until = (what: string, condition: (node: Node) => boolean): Promise<Node> =>
  eventually(
    async () => {
      const seen = await node();
      return condition(seen) && seen;
    },
    what,
    20_000,
  );

async function deleteNode(): Promise<void> {
  await admin.main.delete(resources.nodes, { name: nodeName }, {}, never).catch(() => undefined);
}

/** The agent, as far as the Node goes. Disposing of it ends it as a kill would. */
async function agent(settings: Partial<NodeSettings>, cloud?: { instance: CloudFacts | undefined }) {
  const loops = new TaskScope();
  const ports = { client: asNode.main, clock: systemClock, log: silentLogger, random: Math.random };
  const own = new OwnNode(nodeName, ports);
  const facts = new TestFacts();
  if (cloud !== undefined) {
    facts.cloud = {
      get instance() {
        return cloud.instance;
      },
      firstAnswer: async () => {},
    };
  }
  const keeper = new NodeKeeper(
    { ...testNodeSettings, nodeName, ...settings },
    {
      own,
      csiNode: new CsiNodeKeeper(nodeName, { ...ports, onNode: (seen) => own.answered(seen) }),
      clients: asNode,
      facts,
      clock: systemClock,
      log: silentLogger,
      random: Math.random,
      recordEvent: () => {},
      takePodCidrs: async () => false,
      onRecovered: () => {},
    },
  );
  loops.spawn("node watch", (signal) => own.run(signal));
  keeper.start(loops);
  await until("the node is there", ({ status }) => (status?.conditions ?? []).some(({ type }) => type === "Ready"));
  return {
    /** A fact has changed, so that a status is computed and compared again. */
    async report(pressure: boolean): Promise<void> {
      facts.underPressure = { memory: pressure, disk: false, pid: false };
      keeper.wake();
      const wanted = pressure ? "True" : "False";
      await until("another report", ({ status }) =>
        (status?.conditions ?? []).some(({ type, status: is }) => type === "MemoryPressure" && is === wanted),
      );
    },
    [Symbol.asyncDispose]: () => loops.stop(),
  };
}

const addressesOf = (seen: Node): string[] =>
  (seen.status?.addresses ?? []).map(({ type, address }) => `${type}=${address}`);
const taintsOf = (seen: Node): string[] =>
  (seen.spec?.taints ?? []).map(({ key }) => key).filter((key) => key.includes("cloudprovider"));
const provided = (seen: Node): string | undefined =>
  seen.metadata?.annotations?.["alpha.kubernetes.io/provided-node-ip"];
const uninitialized = ["node.cloudprovider.kubernetes.io/uninitialized"];

test("a cloud controller outside: initialisation, restart, outage, other settings, a node that is deleted", async () => {
  await deleteNode();
  const controller = new FakeCloudController(admin.main, nodeName, {
    providerID: "acme://i-1",
    addresses: [
      { type: "InternalIP", address: "10.0.0.5" },
      { type: "InternalIP", address: "10.0.0.6" },
      { type: "ExternalIP", address: "1.2.3.4" },
    ],
    zone: "east-1a",
  });
  const external = { externalCloud: true, nodeIps: ["10.0.0.5"] };
  const initialised = ["InternalIP=10.0.0.5", "InternalIP=10.0.0.6", "ExternalIP=1.2.3.4", `Hostname=${nodeName}`];
  {
    await using running = await agent(external);
    const fresh = await node();
    assert.deepEqual(taintsOf(fresh), uninitialized);
    assert.equal(provided(fresh), "10.0.0.5");
    assert.deepEqual(addressesOf(fresh), ["InternalIP=10.0.0.5", `Hostname=${nodeName}`]);
    assert.equal(fresh.spec?.providerID, undefined);
    await controller.sync();
    await running.report(true);
    const seen = await node();
    assert.deepEqual(taintsOf(seen), []);
    assert.deepEqual(addressesOf(seen), initialised);
    assert.equal(seen.spec?.providerID, "acme://i-1");
    // The cloud gives the machine another address; then the controller is out for a while.
    controller.instance.addresses = [
      { type: "InternalIP", address: "10.0.0.5" },
      { type: "ExternalIP", address: "4.3.2.1" },
    ];
    await controller.sync();
    await running.report(false);
    assert.deepEqual(addressesOf(await node()), ["InternalIP=10.0.0.5", "ExternalIP=4.3.2.1", `Hostname=${nodeName}`]);
  }
  {
    await using running = await agent({ ...external, nodeIps: [] });
    await running.report(true);
    const seen = await node();
    assert.deepEqual(taintsOf(seen), [], "the taint is never added again");
    assert.deepEqual(addressesOf(seen), ["InternalIP=10.0.0.5", "ExternalIP=4.3.2.1", `Hostname=${nodeName}`]);
    assert.equal(provided(seen), undefined, "no address is given any more");
    assert.equal(seen.spec?.providerID, "acme://i-1");
    assert.equal(seen.metadata?.labels?.["topology.kubernetes.io/zone"], "east-1a");
  }
  await deleteNode();
  {
    await using _running = await agent(external);
    const seen = await node();
    assert.deepEqual(taintsOf(seen), uninitialized, "a Node that is made anew has it");
    assert.equal(provided(seen), "10.0.0.5");
    await controller.sync();
  }
  await using running = await agent({ externalCloud: false });
  await running.report(true);
  const local = await node();
  assert.equal(provided(local), undefined);
  assert.deepEqual(
    addressesOf(local),
    ["InternalIP=10.0.0.5", `Hostname=${nodeName}`],
    "without a cloud, the machine's own",
  );
});

test("a cloud controller outside: without --node-ip the name only, with 0.0.0.0 the default route's", async () => {
  for (const [nodeIps, expected] of [
    [[], [`Hostname=${nodeName}`]],
    [["0.0.0.0"], ["InternalIP=10.0.0.5", `Hostname=${nodeName}`]],
  ] as const) {
    await deleteNode();
    await using _running = await agent({ externalCloud: true, nodeIps });
    const seen = await node();
    assert.deepEqual(addressesOf(seen), expected);
    assert.equal(provided(seen), undefined);
    assert.deepEqual(taintsOf(seen), uninitialized);
  }
});

test("a cloud that the node asks: late, then there, then out, and after a restart", async () => {
  await deleteNode();
  const cloud: { instance: CloudFacts | undefined } = { instance: undefined };
  {
    await using running = await agent({}, cloud);
    assert.deepEqual(addressesOf(await node()), [`Hostname=${nodeName}`]);
    cloud.instance = {
      providerId: "acme://i-2",
      addresses: [{ type: "InternalIP", address: "10.9.9.9" }],
      zone: "z",
      region: "r",
      instanceType: "big",
    };
    await running.report(true);
    const seen = await until("the provider id came late", ({ spec }) => spec?.providerID === "acme://i-2");
    assert.deepEqual(addressesOf(seen), ["InternalIP=10.9.9.9"]);
    const { labels } = seen.metadata ?? {};
    assert.equal(labels?.["topology.kubernetes.io/zone"], "z");
    assert.equal(labels?.["beta.kubernetes.io/instance-type"], "big");
    assert.deepEqual(taintsOf(seen), []);
  }
  cloud.instance = undefined;
  await using running = await agent({}, cloud);
  await running.report(false);
  const seen = await node();
  assert.deepEqual(addressesOf(seen), ["InternalIP=10.9.9.9"], "what is not known stays");
  assert.equal(seen.spec?.providerID, "acme://i-2");
});
