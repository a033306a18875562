import type { TaskScope } from "../ground/base/index.ts";
import { mayChangeHost } from "../ground/config/index.ts";
import { CgroupTree, SystemCgroups } from "../pod/resources/index.ts";
import type { Foundation } from "./foundation.ts";

/** Moves this process, and those that are in no cgroup, to where the configuration wants them, and keeps them there. */
export async function keepSystemCgroups(
  { config, host, clock, process, log: base }: Foundation,
  scope: TaskScope,
): Promise<void> {
  const { kubeletCgroups: agent, systemCgroups } = config.kubelet;
  const log = base.named("cgroups");
  // What others have started belongs to the machine.
  const strays = mayChangeHost(process.environment) ? systemCgroups : "";
  if (agent === "" && strays === "") return;
  const tree = new CgroupTree(host.facts.cgroups, host.cgroupFiles, clock);
  const kept = new SystemCgroups(
    { agent, strays },
    { tree, files: host.cgroupFiles, processes: host.processes, clock, log },
  );
  await kept.ensure();
  scope.spawn("cgroups of the system", (signal) => kept.run(signal));
}
