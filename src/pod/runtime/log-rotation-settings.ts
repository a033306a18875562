import type { AgentConfig } from "../../ground/config/index.ts";
import { parseQuantity, wholeUnits } from "../../ground/model/index.ts";
import type { LogRotationSettings } from "./log-rotation.ts";

export function logRotationSettings({ kubelet }: AgentConfig): LogRotationSettings {
  return {
    maxBytes: Number(wholeUnits(parseQuantity(kubelet.containerLogMaxSize))),
    maxFiles: kubelet.containerLogMaxFiles,
    workers: kubelet.containerLogMaxWorkers,
    intervalMs: kubelet.containerLogMonitorIntervalMs,
  };
}
