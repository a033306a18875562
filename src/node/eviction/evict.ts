import {
  type IdentifiedPod,
  type PodStatus,
  type PodUid,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import type { StorageExcess } from "./storage-limits.ts";

const graceSeconds = 1;

export interface EvictPorts {
  readonly recordEvent: RecordPodEvent;
  readonly terminate: (
    uid: PodUid,
    request: {
      readonly cause: "evicted";
      readonly graceSeconds: number;
      readonly amendStatus: (status: PodStatus) => PodStatus;
    },
  ) => void;
  /** For metrics: a pod was evicted for this signal. */
  readonly onEvicted: (signal: string) => void;
}

/** Ends a pod for good because it holds more than it may. */
export function evict(pod: IdentifiedPod, { signal, message }: StorageExcess, ports: EvictPorts): void {
  ports.onEvicted(signal);
  ports.recordEvent(pod, { type: "Warning", reason: "Evicted", message });
  ports.terminate(uidOf(pod), {
    cause: "evicted",
    graceSeconds,
    amendStatus: (status) => ({ ...status, phase: "Failed", reason: "Evicted", message }),
  });
}
