import type { Probe } from "../../ground/model/index.ts";
import type { ProbeKind, ProbeResult } from "./ports.ts";

/** A probe's spec with its defaults, in the units we count in. */
export interface ProbePlan {
  readonly kind: ProbeKind;
  readonly probe: Probe;
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

export function planOf(kind: ProbeKind, probe: Probe): ProbePlan {
  return {
    kind,
    probe,
    initialDelayMs: (probe.initialDelaySeconds ?? 0) * 1000,
    periodMs: (probe.periodSeconds || 10) * 1000,
    timeoutMs: (probe.timeoutSeconds || 1) * 1000,
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

/** What holds for a container until its probe has decided: alive, not ready, not known to have started. */
export function initialResult(kind: ProbeKind): ProbeResult {
  switch (kind) {
    case "liveness":
      return "success";
    case "readiness":
      return "failure";
    case "startup":
      return "unknown";
  }
}

/** Whether the result stands for as long as this instance of the container lives, so that probing may rest. */
export function isFinal(kind: ProbeKind, result: ProbeResult): boolean {
  switch (kind) {
    case "liveness":
      return result === "failure";
    case "readiness":
      return false;
    case "startup":
      return result !== "unknown";
  }
}

/** Equal findings in a row. */
export interface Streak {
  readonly finding: "success" | "failure";
  readonly length: number;
}

export function lengthen(streak: Streak | undefined, finding: Streak["finding"]): Streak {
  return { finding, length: streak?.finding === finding ? streak.length + 1 : 1 };
}

/** Whether the streak is long enough to become the probe's result. */
export function decides({ finding, length }: Streak, plan: ProbePlan): boolean {
  return length >= (finding === "success" ? plan.successThreshold : plan.failureThreshold);
}

/** The grid point that follows `due`; ticks missed while an attempt ran collapse into one that is due at once. */
export function nextDue(due: number, periodMs: number, now: number): number {
  const next = due + periodMs;
  return next >= now ? next : next + Math.floor((now - next) / periodMs) * periodMs;
}
