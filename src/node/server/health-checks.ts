import { constants } from "node:fs";
import { access, statfs } from "node:fs/promises";
import { type Clock, isAbort, messageOf, type TaskScope } from "../../ground/base/index.ts";
import type { DiskSamples } from "./disk-samples.ts";
import type { HealthRegistry } from "./health.ts";

const tickMs = 10_000;
const ticksRemembered = 6;
const tooLateMs = 5_000;
/** As upstream: a loop that has not turned for so long is stuck. */
const stuckMs = 5 * 60_000;

/** That timers fire, and how late, shows whether the agent gets to its work at all. */
export function watchEventLoop(
  ports: { readonly health: HealthRegistry; readonly clock: Clock },
  scope: TaskScope,
): void {
  const { health, clock } = ports;
  const delays: number[] = [];
  let provenAt = clock.monotonic();
  health.expect("syncloop", stuckMs, "sync Loop took longer than expected");
  health.watch("syncloop", () => ({ state: "ok", provenAt }));
  health.watch("event-loop", () => {
    const worstMs = Math.round(Math.max(0, ...delays));
    const span = `in the last ${(delays.length * tickMs) / 1000} s`;
    if (worstMs < tooLateMs) return { state: "ok", provenAt, note: `timers at most ${worstMs} ms late ${span}` };
    return { state: "waiting", provenAt, reason: `timers came up to ${worstMs} ms late ${span}: too much to do` };
  });
  scope.spawn("event loop", async (signal) => {
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      await clock.sleep(tickMs, signal);
      provenAt = clock.monotonic();
      delays.push(Math.max(0, provenAt - startedAt - tickMs));
      if (delays.length > ticksRemembered) delays.shift();
    }
  });
}

const logBlockedMs = 2 * 60_000;

/** That lines of the log get out. */
export function watchLog(health: HealthRegistry, log: { readonly stalledMs: number }): void {
  health.watch("log", () =>
    log.stalledMs >= logBlockedMs ? { state: "failed", reason: "logging blocked" } : { state: "ok" },
  );
}

const diskEveryMs = 60_000;
const diskSilentMs = 150_000;

/** That the agent's own directory answers and can be written to. A disk that hangs shows by the age of its last proof. */
export function watchDisk(
  rootDir: string,
  ports: { readonly health: HealthRegistry; readonly clock: Clock; readonly samples: DiskSamples },
  scope: TaskScope,
): void {
  const { health, clock, samples } = ports;
  let provenAt: number | undefined;
  let note = "";
  let problem: string | undefined;
  health.watch("disk", () => {
    const silentMs = clock.monotonic() - (provenAt ?? startedAt);
    const reason = problem ?? (silentMs > diskSilentMs ? "it does not answer" : undefined);
    if (reason !== undefined) return { state: "waiting", reason: `the disk of ${rootDir}: ${reason}`, provenAt };
    return { state: "ok", provenAt, ...(note === "" ? {} : { note }) };
  });
  const startedAt = clock.monotonic();
  scope.spawn("disk", async (signal) => {
    while (!signal.aborted) {
      try {
        const { bavail, bsize } = await statfs(rootDir);
        await access(rootDir, constants.W_OK);
        provenAt = clock.monotonic();
        samples.add({ at: clock.now(), availableBytes: bavail * bsize });
        note = `${((bavail * bsize) / 2 ** 30).toFixed(1)} GiB free`;
        problem = undefined;
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        problem = messageOf(error);
      }
      await clock.sleep(diskEveryMs, signal);
    }
  });
}

/** That the API server is heard, and that the node's lease goes through. */
export function watchApi(ports: {
  readonly health: HealthRegistry;
  readonly clock: Clock;
  /** The watch of the node's pods. */
  readonly pods: {
    readonly heardAt: number | undefined;
    readonly problem: string | undefined;
    readonly hasSynced: boolean;
  };
  readonly lease: () => { readonly at: number | undefined; readonly problem: string | undefined } | undefined;
  readonly leaseSeconds: number;
}): void {
  const { health, clock, pods, lease, leaseSeconds } = ports;
  health.watch("api-watch", () => {
    const { heardAt: provenAt, problem, hasSynced } = pods;
    if (problem === undefined && hasSynced) return { state: "ok", provenAt };
    const reason = problem ?? "the first list has not come yet";
    return { state: "waiting", reason: `the API server's pods: ${reason}`, provenAt };
  });
  health.watch("lease", () => {
    const { at: provenAt, problem } = lease() ?? { at: undefined, problem: undefined };
    if (provenAt === undefined) {
      return { state: "waiting", reason: problem ?? "the node's lease was not renewed yet" };
    }
    const silentMs = clock.monotonic() - provenAt;
    if (problem === undefined && silentMs <= leaseSeconds * 1000) return { state: "ok", provenAt };
    const why = problem ?? "no attempt has ended since";
    return {
      state: "waiting",
      reason: `the node's lease was last renewed ${Math.floor(silentMs / 1000)}s ago: ${why}`,
      provenAt,
    };
  });
}
