import { type ContainerStatus, isSidecar, isTerminalPhase, type Pod } from "../../../ground/model/index.ts";
import type { ApiObject } from "../object.ts";
import { humanDuration } from "./age.ts";
import { ageColumn, type Column, column, nameColumn, textOr, wide } from "./column.ts";

const asPod = (object: ApiObject): Pod => object as unknown as Pod;

export const podColumns: readonly Column[] = [
  nameColumn,
  column("Ready", (object) => readyText(asPod(object))),
  column("Status", (object) => statusText(asPod(object))),
  column("Restarts", (object, nowMs) => restartsText(asPod(object), nowMs)),
  ageColumn,
  wide("IP", (object) => asPod(object).status?.podIP || "<none>"),
  wide("Node", textOr("<none>", "spec", "nodeName")),
  wide("Nominated Node", textOr("<none>", "status", "nominatedNodeName")),
  wide("Readiness Gates", (object) => gatesText(asPod(object))),
];

function sidecarNames({ spec }: Pod): ReadonlySet<string> {
  return new Set((spec?.initContainers ?? []).filter(isSidecar).map(({ name }) => name));
}

function readyText(pod: Pod): string {
  const sidecars = sidecarNames(pod);
  const statuses = [
    ...(pod.status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)),
    ...(pod.status?.containerStatuses ?? []),
  ];
  const ready = statuses.filter(
    (status) => status.ready && (status.state?.running !== undefined || sidecars.has(status.name)),
  );
  return `${ready.length}/${(pod.spec?.containers.length ?? 0) + sidecars.size}`;
}

function statusText(pod: Pod): string {
  const { status, metadata } = pod;
  const isGated = status?.conditions?.some(
    ({ type, reason }) => type === "PodScheduled" && reason === "SchedulingGated",
  );
  const initial = isGated ? "SchedulingGated" : status?.reason || status?.phase || "Unknown";
  const initializing = initText(pod);
  const text = initializing ?? containersText(pod, initial);
  if (metadata?.deletionTimestamp === undefined) return text;
  if (status?.reason === "NodeLost") return "Unknown";
  return isTerminalPhase(status?.phase) ? text : "Terminating";
}

/** What holds up the first init container that is not done, if one is. */
function initText(pod: Pod): string | undefined {
  const statuses = pod.status?.initContainerStatuses ?? [];
  const sidecars = sidecarNames(pod);
  const isInitialized = pod.status?.conditions?.some(({ type, status }) => type === "Initialized" && status === "True");
  if (isInitialized) return undefined;
  for (const [index, { name, state, started }] of statuses.entries()) {
    const { terminated, waiting } = state ?? {};
    if (terminated?.exitCode === 0 || (sidecars.has(name) && started === true)) continue;
    if (terminated !== undefined) return `Init:${terminated.reason || signalOrCode(terminated)}`;
    if (waiting?.reason && waiting.reason !== "PodInitializing") return `Init:${waiting.reason}`;
    return `Init:${index}/${pod.spec?.initContainers?.length ?? 0}`;
  }
  return undefined;
}

function containersText(pod: Pod, initial: string): string {
  let text = initial;
  let hasRunning = false;
  for (const { state, ready } of (pod.status?.containerStatuses ?? []).toReversed()) {
    const { waiting, terminated, running } = state ?? {};
    if (waiting?.reason) text = waiting.reason;
    else if (terminated !== undefined) text = terminated.reason || signalOrCode(terminated);
    else if (ready && running !== undefined) hasRunning = true;
  }
  if (text !== "Completed" || !hasRunning) return text;
  const isReady = pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
  return isReady ? "Running" : "NotReady";
}

function signalOrCode({
  signal = 0,
  exitCode,
}: {
  readonly signal?: number | undefined;
  readonly exitCode: number;
}): string {
  return signal === 0 ? `ExitCode:${exitCode}` : `Signal:${signal}`;
}

function restartsText(pod: Pod, nowMs: number): string {
  const sidecars = sidecarNames(pod);
  const all: readonly ContainerStatus[] = pod.status?.initContainerStatuses ?? [];
  const main = [...(pod.status?.containerStatuses ?? []), ...all.filter(({ name }) => sidecars.has(name))];
  const counted = initText(pod) === undefined ? main : all;
  const restarts = counted.reduce((sum, { restartCount }) => sum + restartCount, 0);
  const ends = counted.map(({ lastState }) => Date.parse(lastState?.terminated?.finishedAt ?? ""));
  const last = Math.max(...ends.filter((ms) => !Number.isNaN(ms)));
  return restarts === 0 || !Number.isFinite(last)
    ? String(restarts)
    : `${restarts} (${humanDuration(nowMs - last)} ago)`;
}

function gatesText({ spec, status }: Pod): string {
  const gates = spec?.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const open = gates.filter(({ conditionType }) =>
    status?.conditions?.some((condition) => condition.type === conditionType && condition.status === "True"),
  );
  return `${open.length}/${gates.length}`;
}
