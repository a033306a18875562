import type { AgentConfig } from "../../ground/config/index.ts";

/** How long a container that crashes waits before its next start: at first, and at most. */
export function crashBackoffOf({ gates, kubelet }: Pick<AgentConfig, "gates" | "kubelet">): {
  readonly initialMs: number;
  readonly maxMs: number;
} {
  const reduced = gates.enabled("ReduceDefaultCrashLoopBackOffDecay");
  const defaults = reduced ? { initialMs: 1_000, maxMs: 60_000 } : { initialMs: 10_000, maxMs: 300_000 };
  const maxMs = kubelet.crashLoopBackOff.maxContainerRestartPeriodMs ?? defaults.maxMs;
  return { initialMs: Math.min(defaults.initialMs, maxMs), maxMs };
}
