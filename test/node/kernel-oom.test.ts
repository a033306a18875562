// What the kernel of this machine says of a process that it kills for want of memory, without any runtime between.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { cgroupReader, KernelLog, readCgroupLayout, readOomKills } from "../../src/connections/host/index.ts";
import { silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import { OomWatch } from "../../src/node/oom/index.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { until } from "../support/until.ts";

const layout = await readCgroupLayout();
const top = layout.version === 2 ? layout.mountPoint : (layout.mountPoints.get("memory") ?? "");
const limitFile = layout.version === 2 ? "memory.max" : "memory.limit_in_bytes";
/** A cgroup's name as a runtime gives it. */
const id = process.pid.toString(16).padStart(64, "0");
const parent = `/nodelet-oom-${process.pid}`;
const path = `${parent}/${id}`;
after(() => {
  for (const each of [path, parent]) rmdirSync(join(top, each));
});

test("a process killed in a container's cgroup is found by log and counter, and is told of once", async () => {
  mkdirSync(join(top, path), { recursive: true });
  if (layout.version === 2) writeFileSync(join(top, parent, "cgroup.subtree_control"), "+memory");
  writeFileSync(join(top, path, limitFile), String(20 * 2 ** 20));
  const clock = new FakeClock();
  const told: string[] = [];
  const watch = new OomWatch({
    clock,
    log: silentLogger,
    openKernelLog: () => KernelLog.open(),
    killsOfMachine: () => readOomKills(),
    seen: { load: async () => undefined, save: async () => {} },
    recordNodeEvent: ({ message }) => told.push(message),
    onKill: () => {},
  });
  watch.containerKilled.on((container, kill) => {
    if (container === id) told.push(`${kill?.of} ${kill?.process} ${kill?.pid}`);
  });
  await using scope = new TaskScope();
  const reader = cgroupReader(layout);
  scope.spawn("watch", (signal) => watch.run(() => [[id, reader.oomKills(path) ?? 0]], signal));
  await until("the log was read", () => clock.pendingTimers > 0);
  assert.equal(watch.wasKilled(id), false);
  const script = `echo $$ > ${join(top, path, "cgroup.procs")} && exec tail /dev/zero`;
  const { pid, signal } = spawnSync("sh", ["-c", script]);
  assert.equal(signal, "SIGKILL");
  assert.equal(watch.wasKilled(id), true);
  assert.equal(reader.oomKills(path), 1);
  await clock.advance(10_000);
  await clock.advance(10_000);
  assert.deepEqual(
    told.filter((each) => !each.startsWith("System OOM")),
    [`cgroup tail ${pid}`],
  );
});
