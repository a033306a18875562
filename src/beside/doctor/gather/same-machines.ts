import { Agent } from "node:https";
import { resolve } from "node:path";
import { messageOf, withDeadline } from "../../../ground/base/index.ts";
import { settingText } from "../facts.ts";
import type { NeedFact } from "../gathering.ts";
import type { ExaminedWorld } from "../world.ts";
import { type ServerAccess, send } from "./api-connection.ts";
import { readKubeconfig } from "./kubeconfig.ts";
import { secondsText } from "./patience.ts";
import { wayToServer } from "./server-way.ts";

/** Other nodes of the cluster that say they are this machine. */
export type SameMachines =
  | {
      readonly state: "asked";
      /** How many other nodes were looked at; `isAll`: there are no more. */
      readonly looked: number;
      readonly isAll: boolean;
      readonly names: readonly string[];
    }
  /** Whose credentials they are may not see other nodes. */
  | { readonly state: "forbidden"; readonly kubeconfig: string }
  | { readonly state: "unanswered"; readonly problem: string };

/** A page of nodes with all their images stays below the longest answer that is read. */
const nodesAtOnce = 50;
const usualMs = 1_200;

/**
 * A node of today's clusters sees no node but itself; who looks as an administrator names that kubeconfig as for kubectl.
 * Undefined: no question, without a cluster or without an identity.
 */
export async function gatherSameMachines(
  world: ExaminedWorld,
  need: NeedFact,
  signal: AbortSignal,
): Promise<SameMachines | undefined> {
  const machineId = ((await world.machine.textIfThere("/etc/machine-id")) ?? "").trim();
  const config = await need("config");
  const own = settingText(config, "--kubeconfig");
  if (own === "" || machineId === "") return undefined;
  const [administrators = ""] = (world.env["KUBECONFIG"] ?? "").split(":");
  const kubeconfig = resolve(world.cwd, administrators || own);
  const counted = new Counted(config.report.nodeName, machineId);
  const withinMs = usualMs * world.patience;
  const late = (): Error => new Error(`no answer within ${secondsText(withinMs)}`);
  try {
    return await withDeadline(world.clock, withinMs, late, signal, async (bounded) => {
      const access = await readKubeconfig(world, kubeconfig);
      if (access === undefined) return { state: "unanswered", problem: `${kubeconfig} is not there` };
      const agent = await need("agent");
      const pid = agent.state === "running" ? agent.self.pid : undefined;
      const way = await wayToServer(world, access, pid, bounded);
      return (await countAll(way, counted, bounded)) === "forbidden"
        ? { state: "forbidden", kubeconfig }
        : counted.result("all");
    });
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    // What was seen of a large cluster counts, also when the rest took too long.
    return counted.looked > 0 ? counted.result("some") : { state: "unanswered", problem: messageOf(error) };
  }
}

async function countAll(way: ServerAccess, counted: Counted, signal: AbortSignal): Promise<"forbidden" | "counted"> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    for (let next: string | undefined; next !== ""; ) {
      const more: string = next === undefined ? "" : `&continue=${encodeURIComponent(next)}`;
      const path = `/api/v1/nodes?limit=${nodesAtOnce}${more}`;
      const { status, body } = await send(way, agent, { method: "GET", path, body: undefined }, signal);
      if (status === 401 || status === 403) return "forbidden";
      if (status !== 200) throw new Error(`the API server answered with ${status}`);
      const list = (body ?? {}) as NodeList;
      counted.add(list);
      next = list.metadata?.continue ?? "";
    }
    return "counted";
  } finally {
    agent.destroy();
  }
}

interface NodeList {
  readonly metadata?: { readonly continue?: string };
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly status?: { readonly nodeInfo?: { readonly machineID?: string } };
  }[];
}

class Counted {
  readonly #ownName: string;
  readonly #machineId: string;
  readonly #names: string[] = [];
  looked = 0;

  constructor(ownName: string, machineId: string) {
    this.#ownName = ownName;
    this.#machineId = machineId;
  }

  add({ items }: NodeList): void {
    for (const { metadata, status } of items ?? []) {
      const { name = "" } = metadata ?? {};
      if (name === this.#ownName) continue;
      this.looked++;
      if (status?.nodeInfo?.machineID === this.#machineId) this.#names.push(name);
    }
  }

  result(extent: "all" | "some"): SameMachines {
    return { state: "asked", looked: this.looked, isAll: extent === "all", names: this.#names };
  }
}
