import { ownGraceSeconds } from "../../ground/model/index.ts";
import { planShutdown, type ShutdownGroup, totalSeconds } from "./plan.ts";

/** What `nodelet shutdown --dry-run` shows: what would happen if the machine were turned off now. */
export interface ShutdownReport {
  readonly isUnderWay: boolean;
  readonly totalSeconds: number;
  /** For how long logind lets itself be held up; undefined: there is no lock. */
  readonly allowedSeconds: number | undefined;
  /** Why there is no lock. */
  readonly problem: string | undefined;
  readonly buckets: readonly {
    readonly priority: number;
    readonly seconds: number;
    readonly pods: readonly {
      readonly namespace: string;
      readonly name: string;
      readonly priority: number;
      readonly graceSeconds: number;
      readonly ownGraceSeconds: number;
      readonly isCutShort: boolean;
    }[];
  }[];
}

export function shutdownReport(
  groups: readonly ShutdownGroup[],
  pods: Parameters<typeof planShutdown>[1],
  state: Pick<ShutdownReport, "isUnderWay" | "allowedSeconds" | "problem">,
): ShutdownReport {
  const buckets = planShutdown(groups, pods).map(({ priority, seconds, pods: ending }) => ({
    priority,
    seconds,
    pods: ending.map(({ pod, graceSeconds, isCutShort }) => ({
      namespace: pod.metadata.namespace,
      name: pod.metadata.name,
      priority: pod.spec.priority ?? 0,
      graceSeconds,
      ownGraceSeconds: ownGraceSeconds(pod),
      isCutShort,
    })),
  }));
  return { ...state, totalSeconds: totalSeconds(groups), buckets };
}
