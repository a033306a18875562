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

export function statusEvent(nodeName: string, reason: EventReason): Parameters<RecordNodeEvent>[0] {
  return { type: "Normal", reason, message: `Node ${nodeName} status is now: ${reason}` };
}
