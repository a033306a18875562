// Cgroups of pods that are gone.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bestEffort,
  burstable,
  guaranteed,
  mountPoint,
  node,
  pod,
  signal,
} from "../../../test/support/pod-cgroups-node.ts";
import type { PodUid } from "../../ground/model/index.ts";

test("a cgroup of no pod in which a process runs is left alone: it may be another agent's", async () => {
  const { tree, start, kernel, clock, errors } = node();
  const cgroups = start();
  await cgroups.createTiers();
  await tree.create("/kubepods/podother");
  kernel.setProcesses("/kubepods/podother", 1);
  const look = (): Promise<void> => cgroups.removeOrphanedCgroups(async () => new Set(), signal);
  await look();
  const second = look();
  await clock.advance(5000);
  await second;
  assert.deepEqual(errors, ["Could not remove the cgroup of a pod that is gone"]);
  await assert.rejects(kernel.removeDirectory(`${mountPoint}/kubepods/podother`), { code: "EBUSY" });
});

test("a pod that comes back while cgroups of no pod are removed keeps its own", async () => {
  const { tree, start } = node();
  const cgroups = start();
  await cgroups.createTiers();
  await tree.create("/kubepods/podg-1");
  let back: Promise<void> | undefined;
  const look = (): Promise<void> =>
    cgroups.removeOrphanedCgroups(async () => {
      back = cgroups.ensure(guaranteed);
      return new Set();
    }, signal);
  await cgroups.removeOrphanedCgroups(async () => new Set(), signal);
  await look();
  await back;
  assert.equal(await cgroups.exists(guaranteed), true);
});

test("a pod is known by its slice whatever signs its uid has", async () => {
  const { start } = node({ driver: "systemd" });
  const cgroups = start();
  const odd = pod("a_b-c");
  await cgroups.ensure(odd);
  for (let times = 0; times < 3; times++)
    await cgroups.removeOrphanedCgroups(async () => new Set(["a_b-c" as PodUid]), signal);
  assert.equal(await cgroups.exists(odd), true);
});

test("cgroups of no pod are removed at the second look, those of pods that anybody knows never", async () => {
  const { tree, start, active } = node();
  const cgroups = start();
  await cgroups.createTiers();
  active.push(guaranteed);
  await cgroups.ensure(guaranteed);
  for (const path of ["podleft", "burstable/podknown"]) await tree.create(`/kubepods/${path}`);
  let known: ReadonlySet<PodUid> | undefined;
  const look = (): Promise<void> => cgroups.removeOrphanedCgroups(async () => known, signal);
  // Not every source has spoken.
  for (let times = 0; times < 3; times++) await look();
  assert.equal((await cgroups.list()).size, 3);
  known = new Set(["known" as PodUid]);
  await look();
  assert.equal((await cgroups.list()).size, 3);
  await look();
  assert.deepEqual(await cgroups.list(), new Set(["g-1", "known"]));
});

test("the pods that have cgroups, in all classes and nothing else", async () => {
  const { start, tree } = node();
  const cgroups = start();
  assert.deepEqual(await cgroups.list(), new Set());
  for (const one of [guaranteed, burstable, bestEffort]) await cgroups.ensure(one);
  await tree.create("/kubepods/stranger");
  assert.deepEqual(await cgroups.list(), new Set(["g-1", "b-1", "e-1"]));
});

test("removal: a forgotten pod of any class, with what is below it", async () => {
  const { start, tree } = node();
  const cgroups = start();
  await cgroups.ensure(burstable);
  await tree.create("/kubepods/burstable/podb-1/container/nested");
  await start().remove("b-1" as PodUid, signal);
  assert.deepEqual(await cgroups.list(), new Set());
  await cgroups.remove("b-1" as PodUid, signal);
});

test("removal waits for a process that is just ending", async () => {
  const { start, kernel, clock } = node();
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 1);
  const removal = cgroups.remove("e-1" as PodUid, signal);
  await clock.advance(20);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 0);
  await clock.advance(100);
  await removal;
  assert.deepEqual(await cgroups.list(), new Set());
});

test("removal kills a process that stays: the runtime has forgotten it", async () => {
  const { start, kernel, clock, tree } = node();
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  await tree.create("/kubepods/besteffort/pode-1/container");
  kernel.setProcesses("/kubepods/besteffort/pode-1/container", 1);
  const removal = cgroups.remove("e-1" as PodUid, signal);
  await clock.advance(2000);
  await removal;
  assert.deepEqual(await cgroups.list(), new Set());
});

test("removal gives up on a process that can't be killed", async () => {
  const { start, kernel, clock } = node();
  kernel.unkillable = true;
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 1);
  const removal = assert.rejects(cgroups.remove("e-1" as PodUid, signal), {
    name: "CgroupError",
    message: /^Cannot remove cgroup \/kubepods\/besteffort\/pode-1: EBUSY/,
  });
  await clock.advance(2000);
  await removal;
  assert.deepEqual(await cgroups.list(), new Set(["e-1"]));
  assert.equal(clock.pendingTimers, 0);
});

test("removal can be aborted while it waits", async () => {
  const { start, kernel, clock } = node();
  const cgroups = start();
  await cgroups.ensure(bestEffort);
  kernel.setProcesses("/kubepods/besteffort/pode-1", 1);
  const abort = new AbortController();
  const removal = assert.rejects(cgroups.remove("e-1" as PodUid, abort.signal));
  await clock.advance(3);
  abort.abort();
  await removal;
  assert.equal(clock.pendingTimers, 0);
});
