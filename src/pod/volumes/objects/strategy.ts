import type { Clock } from "../../../ground/base/index.ts";
import { CachedObjects, DirectObjects } from "./polled-objects.ts";
import type { ObjectSource, Objects } from "./ports.ts";
import { WatchedObjects } from "./watched-objects.ts";

export type ChangeDetection = "Watch" | "Cache" | "Get";

const defaultTtlMs = 60_000;

/** How changes of config maps and secrets are found: setting configMapAndSecretChangeDetectionStrategy. */
export function objectsBy(
  strategy: ChangeDetection,
  source: ObjectSource,
  options: {
    readonly clock: Clock;
    readonly syncFrequencyMs: number;
    /** The node's annotation node.alpha.kubernetes.io/ttl in milliseconds. */
    readonly nodeTtlMs?: () => number | undefined;
  },
): Objects {
  const { clock, syncFrequencyMs, nodeTtlMs } = options;
  switch (strategy) {
    case "Watch":
      return new WatchedObjects(source, { clock, idleMs: Math.max(5 * syncFrequencyMs, 60_000) });
    case "Cache":
      return new CachedObjects(source, {
        clock,
        ttlMs: () => nodeTtlMs?.() ?? defaultTtlMs,
        pollMs: syncFrequencyMs,
      });
    case "Get":
      return new DirectObjects(source, { pollMs: syncFrequencyMs });
  }
}
