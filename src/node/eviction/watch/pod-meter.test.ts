import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock } from "../../../../test/support/fake-clock.ts";
import { testPod } from "../../../../test/support/pods.ts";
import { ContainerStats } from "../../../connections/cri/index.ts";
import { never, silentLogger } from "../../../ground/base/index.ts";
import type { CgroupNaming, ObservedPod } from "../../../ground/model/index.ts";
import { PodMeter } from "./pod-meter.ts";

const naming: CgroupNaming = { driver: "cgroupfs", root: "/", perQos: false };
const observed = { containers: [{ id: "c", name: "main", state: "running" }] } as unknown as ObservedPod;

test("pods without cgroups of their own: a runtime that does not answer holds up nobody, and is asked once", async () => {
  const clock = new FakeClock();
  let bytes = 5n;
  let asked = 0;
  let answer: (() => void) | undefined;
  let isHung = false;
  const meter = new PodMeter({
    cgroups: { exists: () => false, children: () => [], memory: () => undefined, tasks: () => undefined },
    naming: () => naming,
    observed: () => observed,
    runtime: {
      listContainerStats: async () => {
        asked++;
        if (isHung) await new Promise<void>((resolve) => (answer = resolve));
        const value = { timestamp: 0n, workingSetBytes: { value: bytes } };
        const stats = ContainerStats.fromPartial({ attributes: { id: "c" }, memory: value });
        return { stats: [stats] };
      },
    },
    clock,
    log: silentLogger,
  });
  const refreshed = async (ms: number): Promise<boolean> => {
    let isOver = false;
    void meter.refresh(never).then(() => {
      isOver = true;
    });
    await clock.advance(ms);
    return isOver;
  };
  const used = (): number | undefined => meter.use(testPod({}, { uid: "u" }))?.memoryBytes;
  assert.equal(await refreshed(0), true);
  assert.equal(used(), 5);
  isHung = true;
  bytes = 9n;
  assert.equal(await refreshed(499), false);
  await clock.advance(1);
  assert.equal(await refreshed(0), true, "one that is asked already is not waited for");
  assert.deepEqual([used(), asked], [5, 2]);
  answer?.();
  await clock.advance(0);
  assert.equal(used(), 9, "a late answer counts");
});

test("a runtime that refuses is spoken of once, not with every look", async () => {
  const said: string[] = [];
  const meter = new PodMeter({
    cgroups: { exists: () => false, children: () => [], memory: () => undefined, tasks: () => undefined },
    naming: () => naming,
    observed: () => observed,
    runtime: {
      listContainerStats: async () => {
        throw new Error("connection refused");
      },
    },
    clock: new FakeClock(),
    log: { ...silentLogger, warn: (message) => said.push(message) },
  });
  for (let look = 0; look < 100; look++) await meter.refresh(never);
  assert.equal(said.length, 1);
});
