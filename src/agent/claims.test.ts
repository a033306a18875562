// Pods with resource claims on virtual time: what they wait for, what they get, and when they have ended.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { claimingPod, ScriptedDriver } from "../../test/support/claim-world.ts";
import { enginePod, TestEngine } from "../../test/support/test-engine.ts";
import { exitsAfter } from "../beside/hollow/index.ts";
import { DraDriverMissing, PluginError } from "../connections/plugins/index.ts";
import { silentLogger } from "../ground/base/index.ts";
import type { DraResourceClaim, IdentifiedPod, PodSpec, PodUid } from "../ground/model/index.ts";
import { ClaimManager, diskFiles } from "../pod/resources/index.ts";
import { noDeviceGrants } from "../pod/runtime/mapping/context.ts";

const gpu = "gpu.example.com";

class ClaimNode {
  readonly drivers = new Map<string, ScriptedDriver>();
  readonly claims = new Map<string, DraResourceClaim>();
  manager: ClaimManager | undefined;

  start(): Promise<TestEngine> {
    return TestEngine.start({
      source: "api",
      startSlots: 2,
      devicesFor: async (pod, container) => ({
        ...noDeviceGrants,
        cdiDevices: this.manager?.cdiDevicesFor(pod, container) ?? [],
      }),
      claims: ({ scope, clock, ledger, wakes, rootDir }) => {
        const manager = new ClaimManager({
          ...{ scope, clock, ledger, log: silentLogger, files: diskFiles },
          settings: { extendedResources: false },
          driver: (name) => {
            const found = this.drivers.get(name);
            if (found === undefined) throw new DraDriverMissing(name);
            return found;
          },
          getClaim: async (_, name) => {
            const claim = this.claims.get(name);
            if (claim === undefined) throw new Error("not found");
            return claim;
          },
          path: join(rootDir, "dra_manager_state"),
          onChange: wakes.pod.tell,
        });
        this.manager = manager;
        void manager.load();
        return manager;
      },
    });
  }

  driver(): ScriptedDriver {
    const driver = this.drivers.get(gpu) ?? new ScriptedDriver(gpu);
    this.drivers.set(gpu, driver);
    this.manager?.registered(gpu);
    return driver;
  }

  allocate(name: string, ...pods: readonly string[]): void {
    const reservedFor = pods.map((pod) => ({ resource: "pods", name: pod, uid: pod }));
    const results = [{ driver: gpu, pool: "node", device: "x", request: "a" }];
    const status = { allocation: { devices: { results } }, reservedFor };
    this.claims.set(name, { metadata: { name, namespace: "default", uid: `uid-${name}` }, spec: {}, status });
  }
}

function pod(name: string, claims: readonly string[], spec: Partial<PodSpec> = {}): IdentifiedPod {
  const { resourceClaims = [], containers } = claimingPod(name, claims).spec;
  return enginePod(name, { resourceClaims, containers, ...spec });
}

const waitsFor = (node: TestEngine, uid: string) => {
  const { reason, message } = node.engine.ledger.read(uid as PodUid)?.blocker ?? {};
  return `${reason}: ${message}`;
};

test("a pod waits for its claim and for the driver, says so, and starts when they are there", async () => {
  const world = new ClaimNode();
  await using node = await world.start();
  await node.want(pod("web", ["one"]));
  const failed = "FailedPrepareDynamicResources: prepare dynamic resources:";
  assert.equal(waitsFor(node, "web"), `${failed} fetch ResourceClaim one: not found`);
  world.claims.set("one", { metadata: { name: "one", uid: "uid-one" }, spec: {} });
  await node.advance(30_000);
  assert.equal(waitsFor(node, "web"), `${failed} ResourceClaim one: not allocated`);
  assert.ok(
    node.events.some((text) => /FailedPrepareDynamicResources.*Failed to prepare dynamic resources/.test(text)),
  );
  world.allocate("one", "web");
  await node.advance(31_000);
  assert.equal(waitsFor(node, "web"), `${failed} DRA driver ${gpu} is not registered`);
  assert.equal(node.phase("web"), "Pending");
  assert.deepEqual(node.runtime.containers(), []);
  const driver = world.driver();
  const tookMs = await node.until("it runs", () => node.phase("web") === "Running");
  assert.ok(tookMs < 1_000, `at once, and not after ${tookMs} ms`);
  assert.deepEqual(driver.asked, ["prepare one"]);
  const ids = node.runtime.containers()[0]?.config.CDIDevices.map(({ name }) => name);
  assert.deepEqual(ids, [`${gpu}/one=a`, `${gpu}/one=b`]);
});

test("deleting a pod that never got its claims waits for nobody", async () => {
  const world = new ClaimNode();
  await using node = await world.start();
  world.allocate("one", "web");
  await node.want(pod("web", ["one"]));
  await node.drop("web");
  await node.until("it is gone", () => !node.engine.workers.knows("web" as PodUid), 5_000);
});

test("nobody is told that a pod has ended before its claims are given back", async () => {
  const world = new ClaimNode();
  await using node = await world.start();
  world.allocate("one", "job");
  const driver = world.driver();
  node.runtime.behave("main", exitsAfter(5_000, 0));
  await node.want(pod("job", ["one"], { restartPolicy: "Never" }));
  world.drivers.clear();
  await node.advance(120_000);
  assert.deepEqual(node.running(), []);
  assert.equal(node.phase("job"), "Running");
  assert.match(
    waitsFor(node, "job"),
    /^FailedUnprepare.*: unprepare dynamic resources: DRA driver .* is not registered$/,
  );
  assert.ok(node.events.some((text) => /FailedUnprepareDynamicResources/.test(text)));
  // The agent dies meanwhile; the next one knows what is left to do.
  await node.restart();
  await node.advance(120_000);
  assert.equal(node.phase("job"), "Running");
  world.drivers.set(gpu, driver);
  world.manager?.registered(gpu);
  await node.until("it has succeeded", () => node.phase("job") === "Succeeded", 5_000);
  assert.deepEqual(driver.asked, ["prepare one", "unprepare one"]);
});

test("after a restart, containers of a running pod start again without API server and driver", async () => {
  const world = new ClaimNode();
  await using node = await world.start();
  world.allocate("one", "web");
  const driver = world.driver();
  await node.want(pod("web", ["one"]));
  await node.until("it runs", () => node.phase("web") === "Running");
  world.drivers.clear();
  world.claims.clear();
  await node.restart();
  await node.advance(60_000);
  assert.deepEqual(node.running(), ["web/main"]);
  assert.equal(node.container("web", "main").restartCount, 0, "nothing was disturbed");
  node.runtime.exit("main", 1);
  await node.until("it runs again", () => node.container("web", "main").restartCount === 1);
  assert.deepEqual(driver.asked, ["prepare one"]);
  const ids = node.runtime.containers().map(({ config }) => config.CDIDevices.map(({ name }) => name).join());
  assert.ok(
    ids.every((text) => text === `${gpu}/one=a,${gpu}/one=b`),
    `${ids}`,
  );
});

test("a driver that hangs delays its own pods only", async () => {
  const world = new ClaimNode();
  await using node = await world.start();
  const driver = world.driver();
  const late = new PluginError("x", "DeadlineExceeded", "context deadline exceeded");
  driver.behave = () => new Promise((_, reject) => node.clock.after(45_000, () => reject(late)));
  const hung = Array.from({ length: 5 }, (_, index) => `hung-${index}`);
  for (const name of hung) world.allocate(name, name);
  await node.want(...hung.map((name) => pod(name, [name])));
  await node.want(...Array.from({ length: 5 }, (_, index) => enginePod(`plain-${index}`)));
  const isRunning = (name: string) => node.phase(name) === "Running";
  const tookMs = await node.until("the others run", () => [0, 1, 2, 3, 4].every((n) => isRunning(`plain-${n}`)));
  assert.ok(tookMs < 2_000, `${tookMs}`);
  assert.ok(!hung.some(isRunning));
  await node.advance(60_000);
  driver.behave = () => undefined;
  await node.until("they run", () => hung.every(isRunning));
});
