import type { Clock } from "../../ground/base/index.ts";
import {
  type IdentifiedPod,
  type NodeDecision,
  type PodStatus,
  type RecordPodEvent,
  takenOffStatus,
} from "../../ground/model/index.ts";
import type { EvictionGrace } from "./plan/planner.ts";

/** Why a pod has to go, and how. */
export interface Eviction {
  /** As metrics know it. */
  readonly signal: string;
  readonly message: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly grace: EvictionGrace;
  /** The node is short of something; otherwise the pod has broken a rule of its own. */
  readonly isDisruption: boolean;
}

export interface EvictPorts {
  readonly clock: Clock;
  readonly recordEvent: RecordPodEvent;
  readonly endPod: (
    pod: IdentifiedPod,
    request: {
      readonly graceSeconds: number;
      readonly atOnce: boolean;
      readonly amendStatus: (status: PodStatus) => PodStatus;
      readonly decision: NodeDecision;
    },
  ) => void;
  /** For metrics: a pod was evicted for this signal. */
  readonly onEvicted: (signal: string) => void;
}

/** Ends a pod for good. */
export function evict(pod: IdentifiedPod, eviction: Eviction, ports: EvictPorts): void {
  const { signal, message, annotations, grace, isDisruption } = eviction;
  ports.onEvicted(signal);
  ports.recordEvent(pod, { type: "Warning", reason: "Evicted", message, ...(annotations && { annotations }) });
  const decision: NodeDecision = { reason: "Evicted", message, disruption: isDisruption ? message : undefined };
  ports.endPod(pod, {
    graceSeconds: grace === "at once" ? 0 : grace,
    atOnce: grace === "at once",
    amendStatus: (status) => takenOffStatus(status, decision, ports.clock.now()),
    decision,
  });
}
