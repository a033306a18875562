import type { Pod } from "../../../ground/model/index.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import type { PodInWait, ProbeCost } from "./agent.ts";

/** The pods of the running agent. */
export interface ExaminedPods {
  readonly pods: readonly Pod[];
  readonly waiting: readonly PodInWait[];
  readonly probes: readonly ProbeCost[];
  /** What the cgroups of pods say of their processes; undefined: no limit. */
  readonly pidLimits: readonly { readonly cgroup: string; readonly limit: number | undefined }[];
  readonly now: number;
}

const mostCgroups = 1_000;

export async function gatherPods(world: ExaminedWorld, need: NeedFact): Promise<ExaminedPods | undefined> {
  const agent = await need("agent");
  if (agent.state === "absent") return undefined;
  if (agent.state === "silent" && agent.isDenied)
    throw new Error("only the agent knows its pods, and it answers root only");
  if (agent.state !== "running") throw new Error("only a running agent knows its pods");
  const { probes = [] } = agent.self;
  const { waiting } = agent;
  const uids = new Set(agent.pods.flatMap(({ metadata }) => metadata?.uid ?? []));
  return { pods: agent.pods, waiting, probes, pidLimits: await pidLimits(world, uids), now: world.clock.now() };
}

/** Of our pods only: another agent on this machine has limits of its own. */
async function pidLimits(
  { root, machine }: ExaminedWorld,
  uids: ReadonlySet<string>,
): Promise<ExaminedPods["pidLimits"]> {
  if (uids.size === 0) return [];
  const { readCgroupLayout } = await import("../../../connections/host/index.ts");
  const layout = await readCgroupLayout(root);
  const top = layout.version === 2 ? layout.mountPoint : layout.mountPoints.get("pids");
  if (top === undefined) return [];
  const found: { cgroup: string; limit: number | undefined }[] = [];
  let looked = 0;
  const walk = async (directory: string, depth: number): Promise<void> => {
    for (const name of await machine.names(directory).catch(() => [])) {
      const path = `${directory}/${name}`;
      const uid = /pod([0-9a-f_-]{32,36})(?:\.slice)?$/.exec(name)?.[1]?.replaceAll("_", "-");
      if (uid !== undefined && uids.has(uid)) {
        const text = await machine.textIfThere(`${path}/pids.max`).catch(() => undefined);
        if (text !== undefined) found.push({ cgroup: path, limit: text.trim() === "max" ? undefined : Number(text) });
      } else if (depth < 4 && looked++ < mostCgroups && /kubepods|besteffort|burstable|nodelet/.test(name)) {
        await walk(path, depth + 1);
      }
    }
  };
  await walk(top, 0);
  return found;
}
