import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import {
  ContainerState,
  CriClient,
  CriError,
  type RuntimeEvent,
  RuntimeEvents,
} from "../../src/connections/cri/index.ts";
import { silentLogger, systemClock, TaskScope } from "../../src/ground/base/index.ts";
import { eventually, Pods } from "../contract/pods.ts";
import { startContainerd } from "../support/containerd.ts";

test("containerd is killed under 50 calls: each fails typed, and the same client goes on once it is back", async (t) => {
  await using containerd = await startContainerd();
  const { endpoint, images, stateDir, cgroupRoot } = containerd;
  const client = new CriClient({ runtimeEndpoint: endpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
  t.after(() => client.close());
  const { runtime } = client;
  const directory = join(stateDir, "pods");
  await mkdir(directory);
  const pods = new Pods();
  const nothing = { [Symbol.asyncDispose]: async () => {} };
  pods.use({ runtime, images: client.images, image: images.busybox, directory, cgroupParent: cgroupRoot, ...nothing });

  await using scope = new TaskScope();
  const seen: RuntimeEvent[] = [];
  const containerdEvents = client.containerdEvents.bind(client);
  const runtimeEvents = new RuntimeEvents({ runtime, containerdEvents, clock: systemClock, log: silentLogger });
  scope.spawn("runtime events", async (signal) => {
    for await (const hint of runtimeEvents.subscribe(signal)) seen.push(hint);
  });
  const gaps = () => seen.filter(({ kind }) => kind === "gap").length;
  await eventually(async () => (gaps() === 1 ? true : undefined));

  const pod = await pods.run();
  const main = await pods.startListening(pod, ["sh", "-c", "trap '' TERM; echo ready; while true; do sleep 1; done"]);
  const stop = () => runtime.stopContainer({ containerId: main, timeout: 3600n });
  const calls = Array.from({ length: 50 }, stop);
  const outcomes = Promise.allSettled(calls);
  await runtime.version({ version: "" });
  assert.equal(client.health().pending.length, 50);

  await containerd.kill9();
  const failures = (await outcomes).map((outcome) => (outcome.status === "rejected" ? outcome.reason : "answered"));
  const codes = new Set(failures.map((failure) => (failure instanceof CriError ? failure.code : failure)));
  assert.deepEqual(codes, new Set(["Unavailable"]));
  assert.ok(failures.every((failure) => failure.operation === "stopContainer"));
  await assert.rejects(runtime.version({ version: "" }), { code: "Unavailable" });
  assert.equal(runtimeEvents.source, undefined);

  await containerd.restart();
  const backAt = performance.now();
  await eventually(() => runtime.version({ version: "" }).catch(() => undefined));
  t.diagnostic(`answered ${Math.round(performance.now() - backAt)} ms after containerd was back`);
  assert.equal((await pods.status(main)).state, ContainerState.CONTAINER_RUNNING);
  await eventually(async () => (gaps() === 2 ? true : undefined));
  await runtime.stopContainer({ containerId: main, timeout: 0n });
  await eventually(async () => seen.find((hint) => hint.kind === "stopped" && hint.id === main));
  await pods.remove(await pods.run());
  await pods.remove(pod);
});
