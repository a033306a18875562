// Processes that give out CPUs, memory and devices are killed for good while they write: whoever comes next finds what
// they had last finished writing, or what they were writing, and never a part of it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { systemClock } from "../../ground/base/index.ts";
import { decodeCpuFile } from "./cpu/cpu-file.ts";
import { decodeDeviceFile } from "./devices/device-file.ts";
import { decodeMemoryFile } from "./memory/memory-file.ts";

/** `NODELET_KILLS=200 npm test -- state-file-kill` is the proof. */
const kills = Number(process.env["NODELET_KILLS"] ?? 3);
const writer = fileURLToPath(new URL("../../../test/support/state-file-writer.ts", import.meta.url));

/** How often the pod that the last write was about has been given something, by file. */
const readers: Readonly<Record<string, (text: string) => number>> = {
  cpu_manager_state: (text) => numberIn([...decodeCpuFile(text).state.exclusive.keys()]),
  memory_manager_state: (text) => numberIn([...decodeMemoryFile(text).state.blocks.keys()]),
  kubelet_internal_checkpoint: (text) => numberIn([...decodeDeviceFile(text).state.keys()]),
};

function numberIn(uids: readonly string[]): number {
  return Math.max(...uids.map((uid) => Number(uid.replace("pod-", ""))));
}

test("killed at any moment of a write, a file is as before or as after", async () => {
  const random = seededRandom(13);
  for (let kill = 0; kill < kills; kill++) {
    const directory = await mkdtemp(join(tmpdir(), "nodelet-kill-"));
    const child = spawn(process.execPath, ["--import", "tsx", writer, directory], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const finished = new Map<string, number>();
      const lines = createInterface({ input: child.stdout });
      const begun = once(lines, "line");
      lines.on("line", (line) => {
        const [file = "", count] = line.split(" ");
        finished.set(file, Number(count));
      });
      await begun;
      await systemClock.sleep(random() * 60, new AbortController().signal);
      const gone = once(child, "close");
      child.kill("SIGKILL");
      await gone;
      for (const [file, read] of Object.entries(readers)) {
        const count = finished.get(file) ?? 0;
        const text = await readFile(join(directory, file), "utf8").catch(() => undefined);
        if (text === undefined) assert.equal(count, 0, `${file} is gone`);
        else assert.ok([count, count + 1].includes(read(text)), `${file}: ${read(text)} after ${count} were finished`);
      }
    } finally {
      child.kill("SIGKILL");
      await rm(directory, { recursive: true, force: true });
    }
  }
});
