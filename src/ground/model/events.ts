import type { IdentifiedPod } from "./pod.ts";
import type { EventReason } from "./reasons.ts";

/** An event as Kubernetes users see it in `kubectl describe`. */
export interface PodEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: EventReason;
  readonly message: string;
  /** `spec.containers{name}` when the event is about one container. */
  readonly fieldPath?: string;
  /** For machines, such as the usage that led to an eviction. */
  readonly annotations?: Readonly<Record<string, string>>;
}

/** Port: where parts announce what happened. Never throws, never waits. */
export type RecordPodEvent = (pod: IdentifiedPod, event: PodEvent) => void;
export type RecordNodeEvent = (event: Omit<PodEvent, "fieldPath">) => void;
