import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cgroupReader, readMemoryOfMachine } from "../../../connections/host/index.ts";
import { never } from "../../../ground/base/index.ts";
import { readSignals } from "./signal-reader.ts";

test("the machine's memory can't be read for a moment: nothing is known, and not that nothing is left", async () => {
  const root = mkdtempSync(join(tmpdir(), "nodelet-signals-"));
  try {
    mkdirSync(join(root, "cgroup"));
    mkdirSync(join(root, "proc"));
    writeFileSync(join(root, "cgroup/memory.stat"), "anon 100\nfile 50\ninactive_file 20\n");
    const cgroups = cgroupReader({ version: 2, mountPoint: "/cgroup", controllers: ["memory"] }, root);
    const read = async () => {
      const ports = {
        sources: {
          cgroups,
          tasks: () => undefined,
          hugePageBytes: () => readMemoryOfMachine(root)?.hugePageBytes ?? 0,
        },
        disks: { read: async () => undefined },
        naming: () => ({ driver: "cgroupfs", root: "/", perQos: false }) as const,
      };
      return [...(await readSignals(ports, never)).observations];
    };
    assert.deepEqual(await read(), []);
    writeFileSync(join(root, "proc/meminfo"), "MemTotal:       1000 kB\nMemAvailable:    600 kB\n");
    assert.deepEqual(await read(), [["memory.available", { available: 1_024_000 - 130, capacity: 1_024_000 }]]);
    // Somebody sets memory aside for huge pages.
    writeFileSync(join(root, "proc/meminfo"), "MemTotal:       1000 kB\nHugetlb:         400 kB\n");
    assert.deepEqual(await read(), [["memory.available", { available: 614_400 - 130, capacity: 614_400 }]]);
  } finally {
    rmSync(root, { recursive: true });
  }
});
