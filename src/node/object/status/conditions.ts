import type { EventReason, NodeCondition, RecordNodeEvent } from "../../../ground/model/index.ts";

/** When and about which node; where a change of a condition is told. */
export interface ConditionContext {
  readonly nodeName: string;
  /** RFC 3339, whole seconds. */
  readonly now: string;
  readonly recordEvent: RecordNodeEvent;
}

interface PressureWords {
  readonly type: "MemoryPressure" | "DiskPressure" | "PIDPressure";
  readonly under: Words;
  readonly free: Words;
}

interface Words {
  readonly reason: string;
  readonly message: string;
  readonly event: EventReason;
}

export const pressures: { readonly [name in "memory" | "disk" | "pid"]: PressureWords } = {
  memory: {
    type: "MemoryPressure",
    under: {
      reason: "KubeletHasInsufficientMemory",
      message: "kubelet has insufficient memory available",
      event: "NodeHasInsufficientMemory",
    },
    free: {
      reason: "KubeletHasSufficientMemory",
      message: "kubelet has sufficient memory available",
      event: "NodeHasSufficientMemory",
    },
  },
  disk: {
    type: "DiskPressure",
    under: { reason: "KubeletHasDiskPressure", message: "kubelet has disk pressure", event: "NodeHasDiskPressure" },
    free: {
      reason: "KubeletHasNoDiskPressure",
      message: "kubelet has no disk pressure",
      event: "NodeHasNoDiskPressure",
    },
  },
  pid: {
    type: "PIDPressure",
    under: {
      reason: "KubeletHasInsufficientPID",
      message: "kubelet has insufficient PID available",
      event: "NodeHasInsufficientPID",
    },
    free: {
      reason: "KubeletHasSufficientPID",
      message: "kubelet has sufficient PID available",
      event: "NodeHasSufficientPID",
    },
  },
};

/** Reason and message change only with the status, so that a person sees what led to it. */
export function pressureCondition(
  { type, under, free }: PressureWords,
  isUnderPressure: boolean,
  known: NodeCondition | undefined,
  { nodeName, now, recordEvent }: ConditionContext,
): NodeCondition {
  const status = isUnderPressure ? "True" : "False";
  if (known?.status === status) return { ...known, lastHeartbeatTime: now };
  const { reason, message, event } = isUnderPressure ? under : free;
  recordEvent(statusEvent(nodeName, event));
  return { type, status, lastHeartbeatTime: now, lastTransitionTime: now, reason, message };
}

/** `problems`: why the node cannot run pods, in the order they are to be read; none when it can. */
export function readyCondition(
  problems: readonly string[],
  shortcoming: string | undefined,
  known: NodeCondition | undefined,
  { nodeName, now, recordEvent }: ConditionContext,
): NodeCondition {
  const isReady = problems.length === 0;
  const status = isReady ? "True" : "False";
  const warning = shortcoming === undefined ? "" : `. WARNING: ${shortcoming}`;
  const changed = known !== undefined && known.status !== status;
  if (changed) recordEvent(statusEvent(nodeName, isReady ? "NodeReady" : "NodeNotReady"));
  return {
    type: "Ready",
    status,
    lastHeartbeatTime: now,
    lastTransitionTime: known === undefined || changed ? now : known.lastTransitionTime,
    reason: isReady ? "KubeletReady" : "KubeletNotReady",
    message: `${isReady ? "kubelet is posting ready status" : joined(problems)}${warning}`,
  };
}

/** One stands for itself, several in brackets, none twice. */
function joined(problems: readonly string[]): string {
  const distinct = [...new Set(problems)];
  return distinct.length === 1 ? (distinct[0] ?? "") : `[${distinct.join(", ")}]`;
}

export function statusEvent(nodeName: string, reason: EventReason): Parameters<RecordNodeEvent>[0] {
  return { type: "Normal", reason, message: `Node ${nodeName} status is now: ${reason}` };
}
