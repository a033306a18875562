import type { ContainerState, ContainerStatus, Pod } from "./kube/gen/types.ts";
import { isSidecar } from "./pod.ts";

/** What a person wants to see of a pod at a glance. */
export interface PodSummary {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** One word, such as Running, Init:1/2 or CrashLoopBackOff. */
  readonly status: string;
  readonly ready: number;
  readonly wanted: number;
  readonly restarts: number;
  readonly ip: string;
  readonly startedAt: number | undefined;
  readonly nodeName: string;
  readonly nominatedNodeName: string;
  readonly readinessGates: { readonly ready: number; readonly wanted: number };
  readonly containers: readonly ContainerSummary[];
  /** Ready, or ended well: nothing is left to wait for. */
  readonly settled: boolean;
  readonly failed: boolean;
  /** It came through the API, not from a manifest of this machine. */
  readonly isOfApi: boolean;
}

export interface ContainerSummary {
  readonly name: string;
  readonly kind: "init" | "sidecar" | "main";
  readonly state: string;
  readonly ready: boolean;
  readonly restarts: number;
}

export function summarize(pod: Pod): PodSummary {
  const { spec, status, metadata } = pod;
  const containers: ContainerSummary[] = [];
  for (const container of spec?.initContainers ?? []) {
    const kind = isSidecar(container) ? "sidecar" : "init";
    containers.push(summarizeContainer(container.name, kind, status?.initContainerStatuses));
  }
  for (const container of spec?.containers ?? []) {
    containers.push(summarizeContainer(container.name, "main", status?.containerStatuses));
  }
  const counted = containers.filter(({ kind }) => kind !== "init");
  const readyCondition = status?.conditions?.find(({ type }) => type === "Ready")?.status === "True";
  return {
    namespace: metadata?.namespace ?? "default",
    name: metadata?.name ?? "",
    uid: metadata?.uid ?? "",
    status: statusWord(pod, containers),
    ready: counted.filter(({ ready }) => ready).length,
    wanted: counted.length,
    restarts: containers.reduce((sum, { restarts }) => sum + restarts, 0),
    ip: status?.podIP ?? "",
    startedAt: status?.startTime === undefined ? undefined : Date.parse(status.startTime),
    nodeName: spec?.nodeName ?? "",
    nominatedNodeName: status?.nominatedNodeName ?? "",
    readinessGates: summarizeGates(pod),
    containers,
    settled: status?.phase === "Succeeded" || (status?.phase === "Running" && readyCondition),
    failed: status?.phase === "Failed",
    isOfApi: metadata?.annotations?.["kubernetes.io/config.source"] === "api",
  };
}

function summarizeGates({ spec, status }: Pod): PodSummary["readinessGates"] {
  const gates = spec?.readinessGates ?? [];
  const isTrue = (wanted: string): boolean =>
    status?.conditions?.some(({ type, status: found }) => type === wanted && found === "True") ?? false;
  return { ready: gates.filter(({ conditionType }) => isTrue(conditionType)).length, wanted: gates.length };
}

function summarizeContainer(
  name: string,
  kind: ContainerSummary["kind"],
  statuses: readonly ContainerStatus[] | undefined,
): ContainerSummary {
  const status = statuses?.find((candidate) => candidate.name === name);
  if (status === undefined) return { name, kind, state: "waiting", ready: false, restarts: 0 };
  return { name, kind, state: describeState(status.state), ready: status.ready, restarts: status.restartCount };
}

function describeState(state: ContainerState | undefined): string {
  if (state?.running) return "running";
  if (state?.terminated) {
    const { reason, exitCode } = state.terminated;
    return reason === "Completed" ? "completed" : `${reason ?? "ended"} (exit ${exitCode})`;
  }
  return state?.waiting?.reason ?? "waiting";
}

/** The phase, unless something more telling holds the pod up. */
function statusWord(pod: Pod, containers: readonly ContainerSummary[]): string {
  const { metadata, status } = pod;
  if (metadata?.deletionTimestamp) return "Terminating";
  const phase = status?.phase ?? "Pending";
  if (phase === "Succeeded") return "Completed";
  if (phase === "Failed") return status?.reason ?? "Failed";
  const initPart = containers.filter(({ kind }) => kind !== "main");
  const done = initPart.filter((container) => isInitDone(container)).length;
  const stuck = containers.find(({ state }) => /^(?:Err|.*BackOff|.*Error|InvalidImageName)/.test(state));
  if (stuck !== undefined) return stuck.kind === "main" ? stuck.state : `Init:${stuck.state}`;
  if (phase === "Pending" && done < initPart.length && status?.podIP) return `Init:${done}/${initPart.length}`;
  return status?.reason ?? phase;
}

function isInitDone({ kind, state, ready }: ContainerSummary): boolean {
  return kind === "init" ? state === "completed" : ready || state === "running";
}
