// A DRA driver, as a process of its own, beside the built agent, an API server and a real containerd: it is killed, comes
// back, hangs and talks rubbish. Pods that run never notice; pods that come wait for it, and nobody else does.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { resources } from "../../src/connections/kube/index.ts";
import { UnixChannel } from "../../src/ground/grpc/index.ts";
import type { DraResourceClaim, PodSpec } from "../../src/ground/model/index.ts";
import { PodResourcesListerDefinition } from "../../src/node/server/pod-resources/gen/pod-resources.ts";
import { isReady } from "../support/agent.ts";
import { ApiCluster } from "../support/api-cluster.ts";
import { startContainerd, type TestContainerd } from "../support/containerd.ts";
import { buildDriverProgram, DriverProcess } from "../support/dra-driver-process.ts";
import { untilTold } from "../support/raw-runtime.ts";
import { idOf, statusOf } from "../support/test-node.ts";
import { soon, until } from "../support/until.ts";

const name = "gpu.example.com";
let program: AsyncDisposable;
let containerd: TestContainerd;
let cluster: ApiCluster;
let driver: DriverProcess;
before(async () => {
  program = await buildDriverProgram();
  containerd = await startContainerd();
  cluster = await ApiCluster.start(containerd);
});
after(async () => {
  await driver?.kill();
  await cluster?.[Symbol.asyncDispose]();
  await containerd?.[Symbol.asyncDispose]();
  await program?.[Symbol.asyncDispose]();
});

test("pods have their claims whatever becomes of the driver", async () => {
  const { admin, agent } = cluster;
  const begin = async (): Promise<DriverProcess> => {
    const begun = await DriverProcess.start(agent.rootDir, name);
    await begun.order({ register: true });
    return begun;
  };
  const run = async (pod: string, claim?: string): Promise<string> => {
    const main = { name: "main", image: containerd.images.busybox, command: untilTold };
    const claims: Partial<PodSpec> = {
      resourceClaims: [{ name: "mine", resourceClaimName: claim ?? "" }],
      containers: [{ ...main, resources: { claims: [{ name: "mine" }] } }],
    };
    return (await cluster.create(pod, claim === undefined ? { containers: [main] } : claims)).metadata.uid;
  };
  /** What a scheduler does: it chooses devices, and says for whom. */
  const allocate = async (claim: string, pods: Readonly<Record<string, string>>): Promise<void> => {
    const ref = { namespace: "default", name: claim };
    const found = await admin.get(resources.resourceClaims, ref, {}, soon());
    const results = [{ driver: name, pool: "pool", device: "dev", request: "dev" }];
    const reservedFor = Object.entries(pods).map(([pod, uid]) => ({ resource: "pods", name: pod, uid }));
    const status = { allocation: { devices: { results } }, reservedFor };
    await admin.update(resources.resourceClaims, { ...ref, subresource: "status" }, { ...found, status }, soon());
  };
  const make = async (claim: string): Promise<void> => {
    const request = { name: "dev", exactly: { deviceClassName: "any" } };
    const object: DraResourceClaim = { metadata: { name: claim }, spec: { devices: { requests: [request] } } };
    const kind = { apiVersion: "resource.k8s.io/v1", kind: "ResourceClaim" };
    await admin.create(resources.resourceClaims, { namespace: "default" }, { ...kind, ...object }, soon());
  };
  const waitsFor = (pod: string, what: RegExp): Promise<void> =>
    until(`${pod} waits for ${what}`, async () => {
      const answer = await agent.client.ledger(pod, soon()).catch(() => undefined);
      return what.test(JSON.stringify(answer?.ledger));
    });
  const prepared = async (): Promise<string> => (await driver.order({ tell: true })).split("; ")[1] ?? "";

  for (const claim of ["one", "two", "three"]) await make(claim);
  const first = await run("first", "one");
  await waitsFor("first", /ResourceClaim one: not allocated/);
  await allocate("one", { first });
  await waitsFor("first", /DRA driver gpu.example.com is not registered/);
  driver = await begin();
  const running = await cluster.until("first", "ready", isReady);
  assert.equal(await prepared(), "one");
  const channel = new UnixChannel(join(agent.rootDir, "pod-resources", "kubelet.sock"), (_, error) => error);
  const { fullName, methods } = PodResourcesListerDefinition;
  const asked = { operation: "get", deadline: undefined, signal: soon() };
  const { podResources } = await channel.unary(
    fullName,
    methods.get,
    { podName: "first", podNamespace: "default" },
    asked,
  );
  channel.close();
  const cdi = [{ name: "example.com/dra=one" }];
  assert.deepEqual(podResources?.containers[0]?.dynamicResources, [
    {
      claimName: "one",
      claimNamespace: "default",
      claimResources: [{ driverName: name, poolName: "pool", deviceName: "dev", cdiDevices: cdi }],
    },
  ]);

  // Driver and agent die together. Who runs is left alone, who comes waits.
  await driver.kill();
  await agent.kill9();
  await agent.launch();
  const second = await run("second", "two");
  await allocate("two", { second });
  await waitsFor("second", /DRA driver gpu.example.com is not registered|NodePrepareResources: rpc error/);
  driver = await begin();
  await cluster.until("second", "ready", isReady);
  assert.equal(await prepared(), "two", "the first was not prepared again");

  // One that hangs holds up its own pods only.
  await driver.order({ behave: "hang" });
  const third = await run("third", "three");
  await allocate("three", { third });
  await run("plain");
  await cluster.until("plain", "ready", isReady);
  await waitsFor("third", /NodePrepareResources of three/);
  await driver.kill();
  driver = await begin();
  await driver.order({ behave: "rubbish" });
  await waitsFor("third", /NodePrepareResources: rpc error: code = /);
  await driver.order({ behave: "well" });
  await cluster.until("third", "ready", isReady);

  // What is given back is given back when the driver can take it, and not before.
  await driver.order({ behave: "refuse" });
  await admin.delete(resources.pods, { namespace: "default", name: "third" }, {}, soon());
  await waitsFor("third", /NodeUnprepareResources: rpc error: code = Internal desc = no power/);
  await driver.order({ behave: "well" });
  await cluster.untilGone("third");
  assert.equal(await prepared(), "");
  const now = await cluster.until("first", "ready", isReady);
  assert.equal(idOf(statusOf(now, "main")), idOf(statusOf(running, "main")), "the first one was not touched");
});
