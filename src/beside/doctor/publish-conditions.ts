import { Agent } from "node:https";
import { resolve } from "node:path";
import { messageOf, withDeadline } from "../../ground/base/index.ts";
import { apiTime } from "../../ground/model/index.ts";
import { type Facts, known, settingText } from "./facts.ts";
import type { ConditionsWritten, DoctorFinding } from "./finding.ts";
import { send } from "./gather/api-connection.ts";
import { readKubeconfig } from "./gather/kubeconfig.ts";
import { wayToServer } from "./gather/server-way.ts";
import { nodeConditions } from "./node-conditions.ts";
import type { ExaminedWorld } from "./world.ts";

const withinMs = 5_000;

/** Writes what was found into the conditions of the Node, in the node's own name; others of it stay as they are. */
export async function publishConditions(
  world: ExaminedWorld,
  facts: Facts,
  findings: readonly DoctorFinding[],
  signal: AbortSignal,
): Promise<ConditionsWritten> {
  const late = (): Error => new Error(`no answer within ${withinMs / 1000} s`);
  try {
    return await withDeadline(world.clock, withinMs, late, signal, (bounded) => write(world, facts, findings, bounded));
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { problem: messageOf(error) };
  }
}

async function write(
  world: ExaminedWorld,
  facts: Facts,
  findings: readonly DoctorFinding[],
  signal: AbortSignal,
): Promise<ConditionsWritten> {
  const config = known(facts.config);
  const named = settingText(config, "--kubeconfig");
  if (named === "") throw new Error("the agent has no kubeconfig, so there is no Node to write them to");
  const kubeconfig = resolve(world.cwd, named);
  const access = await readKubeconfig(world, kubeconfig);
  if (access === undefined) throw new Error(`${kubeconfig} is not there`);
  const self = "value" in facts.agent && facts.agent.value.state === "running" ? facts.agent.value.self : undefined;
  const way = await wayToServer(world, access, self?.pid, signal);
  const path = `/api/v1/nodes/${encodeURIComponent(config.report.nodeName)}`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    const found = await send(way, agent, { method: "GET", path, body: undefined }, signal);
    if (found.status !== 200) throw new Error(`the API server answered with ${found.status} when asked for the Node`);
    const { status } = (found.body ?? {}) as {
      readonly status?: { readonly conditions?: Parameters<typeof nodeConditions>[1] };
    };
    const now = apiTime(world.clock.now());
    const conditions = nodeConditions(findings, status?.conditions ?? [], now);
    if (conditions.length === 0) throw new Error("none of the checks that they come from was made");
    const patch = {
      method: "PATCH",
      path: `${path}/status`,
      body: { status: { conditions } },
      contentType: "application/strategic-merge-patch+json",
    };
    const reply = await send(way, agent, patch, signal);
    if (reply.status !== 200) throw new Error(`the API server answered with ${reply.status} to them`);
    return { written: conditions.map(({ type, status: said }) => ({ type, status: said })) };
  } finally {
    agent.destroy();
  }
}
