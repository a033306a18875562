import type { Clock, Logger, TaskScope } from "../base/index.ts";
import type { AgentConfig } from "../config/index.ts";
import type { CriClient } from "../cri/index.ts";
import type { CgroupLayout, Machine } from "../host/index.ts";
import type { HealthRegistry, LocalViews } from "../server/index.ts";
import type { ConnectedRuntime } from "./runtime-link.ts";

/** Everything the pods' side of the agent is built from. */
export interface AgentParts {
  readonly config: AgentConfig;
  /** --root-dir in canonical form. */
  readonly rootDir: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly health: HealthRegistry;
  readonly cri: CriClient;
  readonly runtime: ConnectedRuntime;
  readonly machine: Machine;
  readonly cgroups: CgroupLayout;
}

/** The pods' side as the doors see it. Its loops live in the scope it was started with. */
export interface PodEngine {
  readonly views: LocalViews;
}

/** Connects sources, workers and what they drive, and starts them in the scope; leaving the scope stops loops, never pods. */
export async function startPods(_parts: AgentParts, _scope: TaskScope): Promise<PodEngine> {
  return { views: { pods: () => [], watchPods: () => () => {}, ledger: () => undefined } };
}
