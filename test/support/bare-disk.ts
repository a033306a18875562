import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { goWithout } from "./missing.ts";

let disks = 0;

/** An empty disk made of a file; the test is left out where the machine has no loop devices to spare. */
export function bareDisk(t: TestContext, directory: string): string | undefined {
  try {
    const file = join(directory, `disk-${++disks}.img`);
    execFileSync("truncate", ["-s", "16M", file]);
    const device = execFileSync("losetup", ["--show", "-f", file], { encoding: "utf8" }).trim();
    t.after(() => execFileSync("losetup", ["-d", device]));
    return device;
  } catch (error) {
    goWithout(t, `no loop device: ${String(error)}`);
    return undefined;
  }
}
