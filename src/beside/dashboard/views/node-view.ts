import { type Pod, podResources, type ResourceAmounts } from "../../../ground/model/index.ts";
import type { DashboardPorts, NodeShown } from "../ports.ts";
import type { AmountView, ApiView, ConditionView, HealthView, NodeOverview } from "../wire.ts";
import { conditionView } from "./condition-view.ts";
import { timeOf, wholeOf } from "./pod-row.ts";

const mostWarnings = 8;

type NodePorts = Pick<DashboardPorts, "facts" | "node" | "events" | "pods" | "clock" | "health">;

/** The node at this moment. */
export function nodeView(
  ports: NodePorts,
  diskBytes: number | undefined,
  finding: NodeOverview["finding"],
): NodeOverview {
  const { facts, events, pods } = ports;
  const shown = ports.node();
  const warnings = events().filter(({ type }) => type === "Warning");
  return {
    ...facts,
    runtime: shown.runtime && { name: shown.runtime.name, version: shown.runtime.version },
    runtimeProblem: shown.runtimeProblem,
    conditions: conditionsOf(shown),
    amounts: amountsOfNode(ports, shown, pods.all(), diskBytes),
    api: apiView(shown, ports),
    warnings: warnings.slice(-mostWarnings).reverse(),
    finding,
  };
}

export function healthViews({ health, clock }: Pick<DashboardPorts, "health" | "clock">): readonly HealthView[] {
  const now = clock.now();
  // Whole seconds: a millisecond more or less would be news every time.
  const ago = (ms: number): number => Math.round((now - ms) / 1000) * 1000;
  return health().map(({ name, health: { state, ...said }, sinceMs, provenMs }) => ({
    name,
    state,
    text: "reason" in said ? said.reason : (said.note ?? ""),
    since: ago(sinceMs),
    provenAt: provenMs === undefined ? undefined : ago(provenMs),
  }));
}

/** Those of the Node; without an API server, what they would be made from. */
function conditionsOf({
  node,
  runtime,
  runtimeProblem,
  networkProblem,
  pressure,
}: NodeShown): readonly ConditionView[] {
  const conditions = node?.status?.conditions;
  if (conditions !== undefined && conditions.length > 0) {
    return conditions.map(conditionView).toSorted((a, b) => Number(b.type === "Ready") - Number(a.type === "Ready"));
  }
  const problem = runtime === undefined ? "the runtime has not answered yet" : (runtimeProblem ?? networkProblem);
  return [
    { type: "Ready", status: problem === undefined ? "True" : "False", message: problem ?? "" },
    ...["MemoryPressure", "DiskPressure", "PIDPressure"].map((type) => ({
      type,
      status: pressure.includes(type) ? "True" : "False",
    })),
  ].map(conditionView);
}

function amountsOfNode(
  { facts }: NodePorts,
  { allocatable, pidLimit }: NodeShown,
  pods: readonly Pod[],
  diskBytes: number | undefined,
): readonly AmountView[] {
  const running = pods.filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
  const requested = new Map<string, bigint>();
  for (const { spec } of running) {
    if (spec === undefined) continue;
    for (const [name, amount] of podResources(spec, "with overhead").requests) {
      requested.set(name, (requested.get(name) ?? 0n) + amount);
    }
  }
  const of = (amounts: ResourceAmounts, name: string): number | undefined => wholeOf(amounts.get(name));
  const row = (name: AmountView["name"], resource: string, capacity: number | undefined): AmountView => ({
    name,
    capacity,
    allocatable: of(allocatable, resource),
    requested: of(requested, resource) ?? 0,
  });
  const storage = row("storage", "ephemeral-storage", diskBytes);
  return [
    row("cpu", "cpu", facts.cpus),
    row("memory", "memory", facts.memoryBytes),
    storage,
    {
      name: "pods",
      capacity: of(allocatable, "pods"),
      allocatable: of(allocatable, "pods"),
      requested: running.length,
    },
    { name: "pids", capacity: pidLimit, allocatable: pidLimit, requested: undefined },
  ];
}

function apiView({ api, node }: NodeShown, { clock }: NodePorts): ApiView {
  if (api === undefined) return { state: "alone" };
  const onWall = (monotonic: number | undefined): number | undefined =>
    monotonic === undefined ? undefined : Math.round((clock.now() - clock.monotonic() + monotonic) / 1000) * 1000;
  const ready = node?.status?.conditions?.find(({ type }) => type === "Ready");
  return {
    state: api.problem === undefined && api.hasSynced ? "connected" : "away",
    problem: api.problem ?? (api.hasSynced ? undefined : "the first list of pods has not come yet"),
    nextTryAt: onWall(api.nextTryAt),
    heardAt: onWall(api.heardAt),
    leaseAt: onWall(api.lease?.at),
    leaseProblem: api.lease?.problem,
    statusAt: timeOf(ready?.lastHeartbeatTime),
  };
}
