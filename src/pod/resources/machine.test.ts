import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { canControlSwap } from "./swap-control.ts";

async function onMadeUpMachine(run: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "machine-"));
  try {
    await run(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

test("swap on cgroup v2: judged by the cgroup we live in", async () => {
  await onMadeUpMachine(async (root) => {
    const layout = { version: 2, mountPoint: "/sys/fs/cgroup", controllers: ["memory"] } as const;
    assert.equal(await canControlSwap(layout, root), false);
    await mkdir(join(root, "proc/self"), { recursive: true });
    await writeFile(join(root, "proc/self/cgroup"), "0::/system.slice/agent.service\n");
    assert.equal(await canControlSwap(layout, root), false);
    const own = join(root, "sys/fs/cgroup/system.slice/agent.service");
    await mkdir(own, { recursive: true });
    await writeFile(join(own, "memory.swap.max"), "max\n");
    assert.equal(await canControlSwap(layout, root), true);
  });
});

test("swap on cgroup v1: judged by the memory hierarchy", async () => {
  await onMadeUpMachine(async (root) => {
    const without = { version: 1, mountPoints: new Map(), unifiedMountPoint: undefined } as const;
    assert.equal(await canControlSwap(without, root), false);
    const layout = { ...without, mountPoints: new Map([["memory", "/sys/fs/cgroup/memory"]]) };
    assert.equal(await canControlSwap(layout, root), false);
    await mkdir(join(root, "sys/fs/cgroup/memory"), { recursive: true });
    await writeFile(join(root, "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes"), "1\n");
    assert.equal(await canControlSwap(layout, root), true);
  });
});
