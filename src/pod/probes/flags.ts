import type { ContainerKind, ObservedContainer } from "../../ground/model/index.ts";
import type { ProbeResult } from "./ports.ts";

type Seen = Pick<ObservedContainer, "state" | "exitCode"> | undefined;

/**
 * The `started` flag of a container status; undefined where the status has none. A result of undefined means that the
 * container has no such probe.
 */
export function isStarted(kind: ContainerKind, seen: Seen, startup: ProbeResult | undefined): boolean | undefined {
  if (kind === "ephemeral") return undefined;
  return seen?.state === "running" && (startup === undefined || startup === "success");
}

/** The `ready` flag of a container status. */
export function isReady(
  kind: ContainerKind,
  seen: Seen,
  startup: ProbeResult | undefined,
  readiness: ProbeResult | undefined,
): boolean {
  switch (kind) {
    case "ephemeral":
      return false;
    case "init":
      return seen?.state === "exited" && seen.exitCode === 0;
    case "regular":
    case "sidecar":
      return isStarted(kind, seen, startup) === true && (readiness === undefined || readiness === "success");
  }
}
