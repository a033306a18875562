// Removes what an agent of a test left behind whose test process died: `remove-home.ts DIRECTORY`.
import { readdirSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { endsWithin, identify, removeCgroup, signalProcess, unmountBelow } from "../../src/beside/cli/machine/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";

/** The parent of the pods' cgroups, where an agent of such a home has any. */
export function cgroupOfHome(directory: string): string {
  return `/${basename(directory)}`;
}

/** Everything of a `DaemonHome`: the agents that live in it, their cgroups, mounts and files. */
export async function removeHome(directory: string): Promise<void> {
  for (const pid of agentsOf(directory)) {
    const agent = await identify(pid);
    if (agent === undefined) continue;
    await signalProcess(agent, "SIGKILL");
    await endsWithin(agent, 10_000, systemClock);
  }
  await removeCgroup(cgroupOfHome(directory), systemClock);
  await unmountBelow(directory);
  rmSync(directory, { recursive: true, force: true });
}

/** The directory has a name of its own on this machine: who was started with it belongs to it. */
function agentsOf(directory: string): readonly number[] {
  const wanted = `--root-dir=${join(directory, "root")}`;
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(wanted);
      } catch {
        // It has just ended.
        return false;
      }
    });
}

const [, program, directory] = process.argv;
if (program?.endsWith("remove-home.ts") && directory !== undefined) await removeHome(realpathSync(directory));
