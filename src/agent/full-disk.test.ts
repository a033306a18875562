import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { WholeAgent } from "../../test/support/whole-agent.ts";
import { hasCode } from "../ground/base/index.ts";

/** A disk of its own that the test can fill up, for all files of an agent. */
class SmallDisk implements Disposable {
  readonly point = mkdtempSync(join(tmpdir(), "nodelet-disk-"));
  readonly directory = join(this.point, "agent");

  constructor() {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m,mode=755", "tmpfs", this.point]);
    mkdirSync(this.directory);
  }

  #pieces = 0;

  fill(): void {
    for (let piece = 64 * 1024; piece >= 1; piece = Math.floor(piece / 4)) {
      try {
        for (;;) writeFileSync(join(this.point, `full-${this.#pieces++}`), Buffer.alloc(piece));
      } catch (error) {
        if (!hasCode(error, "ENOSPC")) throw error;
      }
    }
  }

  free(): void {
    execFileSync("sh", ["-c", `rm -f ${this.point}/full-*`]);
  }

  [Symbol.dispose](): void {
    execFileSync("umount", ["-l", this.point]);
    rmdirSync(this.point);
  }
}

test("a full disk: what runs goes on and can be deleted, what comes waits, and all is well once there is room", async () => {
  using disk = new SmallDisk();
  await using whole = await WholeAgent.start({ directory: disk.directory });
  whole.create("before");
  whole.create("leaving");
  await whole.until("pods run", () => whole.running().length === 2);
  disk.fill();
  const ending = whole.runtime.containers().find(({ sandbox }) => sandbox.config.metadata?.name === "before");
  whole.runtime.exit(ending?.id ?? "", 1);
  await whole.until("the API shows it", () => whole.pod("before")?.status?.containerStatuses?.[0]?.restartCount === 1);
  whole.delete("leaving");
  await whole.until("the other is gone", () => whole.pod("leaving") === undefined);
  // It has made some room.
  disk.fill();
  whole.create("plain");
  await whole.advance(60_000);
  assert.match(whole.pod("plain")?.status?.containerStatuses?.[0]?.state?.waiting?.message ?? "", /ENOSPC/);
  assert.equal(whole.outcome, undefined);
  disk.free();
  const wanted = ["before/main", "plain/main"];
  await whole.until("all run", () => wanted.every((name) => whole.running().includes(name)), 600_000);
  rmSync(disk.directory, { recursive: true, force: true });
});
