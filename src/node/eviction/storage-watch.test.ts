import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../test/support/fake-clock.ts";
import { podWithVolumes } from "../../../test/support/volume-node.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import { type IdentifiedPod, isCriticalPod } from "../../ground/model/index.ts";
import { StorageWatch } from "./storage-watch.ts";

const volumes = [{ name: "v", emptyDir: { sizeLimit: "100Ki" } }];

class Node implements AsyncDisposable {
  readonly clock = new FakeClock();
  readonly scope = new TaskScope();
  pods: IdentifiedPod[] = [];
  usedBytes = 0n;
  measurements = 0;
  /** How long one measurement takes. */
  workMs = 0;
  problem: Error | undefined;
  /** Pods whose measurement does not end. */
  readonly endless = new Set<IdentifiedPod>();
  endlessMeasurements = 0;
  readonly evicted: [string, string][] = [];

  constructor() {
    const watch = new StorageWatch({
      clock: this.clock,
      log: silentLogger,
      activePods: () => this.pods,
      isExempt: isCriticalPod,
      measure: async (pod, _limits, signal) => {
        this.measurements++;
        if (this.endless.has(pod)) {
          this.endlessMeasurements++;
          await this.clock.sleep(1e9, signal);
        }
        if (this.workMs > 0) await this.clock.sleep(this.workMs, signal);
        if (this.problem !== undefined) throw this.problem;
        const used = { name: "v", usedBytes: this.usedBytes, isLocalEphemeral: true };
        return { volumes: [used], containers: new Map(), ownBytes: 0n };
      },
      layers: async () => "on the node's disk",
      evict: (pod, { message }) => {
        this.evicted.push([pod.metadata.name, message]);
        this.pods = this.pods.filter((other) => other !== pod);
      },
    });
    this.scope.spawn("watch", (signal) => watch.run(signal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.scope.stop();
  }
}

test("a pod over its limit is evicted within ten seconds, once", async () => {
  await using node = new Node();
  const pod = podWithVolumes(volumes);
  node.pods = [pod, podWithVolumes([{ name: "v", emptyDir: {} }])];
  await node.clock.advance(10_000);
  assert.deepEqual(node.evicted, []);
  node.usedBytes = 200n * 1024n;
  await node.clock.advance(30_000);
  assert.deepEqual(node.evicted, [[pod.metadata.name, 'Usage of EmptyDir volume "v" exceeds the limit "100Ki". ']]);
});

test("pods without a limit, and critical ones, are not even measured", async () => {
  await using node = new Node();
  const asStatic = podWithVolumes(volumes);
  const annotations = { "kubernetes.io/config.source": "file" };
  node.usedBytes = 1n << 40n;
  node.pods = [
    podWithVolumes([{ name: "v", emptyDir: {} }]),
    { ...asStatic, metadata: { ...asStatic.metadata, annotations } },
    podWithVolumes(volumes, { priority: 2_000_001_000 }),
  ];
  await node.clock.advance(60_000);
  assert.deepEqual([node.measurements, node.evicted], [0, []]);
});

test("trouble with measuring ends nothing", async () => {
  await using node = new Node();
  node.pods = [podWithVolumes(volumes)];
  node.problem = new Error("the disk is slow");
  node.workMs = 5_000;
  await node.clock.advance(20_000);
  assert.ok(node.measurements > 0);
  node.problem = undefined;
  node.usedBytes = 200n * 1024n;
  await node.clock.advance(30_000);
  assert.equal(node.evicted.length, 1);
});

test("pods that take for ever to measure keep nobody else from being measured, and are not measured twice", async () => {
  await using node = new Node();
  const endless = Array.from({ length: 5 }, () => podWithVolumes(volumes));
  const ordinary = podWithVolumes(volumes);
  for (const pod of endless) node.endless.add(pod);
  node.pods = [...endless, ordinary];
  await node.clock.advance(20_000);
  node.usedBytes = 200n * 1024n;
  await node.clock.advance(20_000);
  assert.deepEqual(
    node.evicted.map(([name]) => name),
    [ordinary.metadata.name],
  );
  assert.equal(node.endlessMeasurements, endless.length);
});

test("a pod that ends while it is measured has ended for its own reason", async () => {
  await using node = new Node();
  node.pods = [podWithVolumes(volumes)];
  node.usedBytes = 200n * 1024n;
  node.workMs = 500;
  await node.clock.advance(10_100);
  node.pods = [];
  await node.clock.advance(20_000);
  assert.deepEqual([node.measurements, node.evicted], [1, []]);
});
