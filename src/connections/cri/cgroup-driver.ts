import type { Clock, Logger } from "../../ground/base/index.ts";
import { criCodeOf } from "./errors.ts";
import { CgroupDriver } from "./gen/runtime/v1/status.ts";
import type { RuntimeService } from "./services.ts";

const betweenTriesMs = 2_000;

/**
 * The cgroup driver the runtime wants; undefined when it has no opinion and the configured one stays. A runtime in trouble
 * is asked until it answers: an agent that gave up would only be started again to ask the same, and with a guess it could
 * put pods into other cgroups than their containers are in.
 */
export async function cgroupDriverOf(
  { runtime, clock, log }: { runtime: Pick<RuntimeService, "runtimeConfig">; clock: Clock; log: Logger },
  signal: AbortSignal,
): Promise<"systemd" | "cgroupfs" | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      const { linux } = await runtime.runtimeConfig({}, { signal });
      // SYSTEMD is the zero value, so only the presence of the message tells that the runtime meant it.
      if (linux === undefined) return undefined;
      return linux.cgroupDriver === CgroupDriver.SYSTEMD ? "systemd" : "cgroupfs";
    } catch (error) {
      const code = criCodeOf(error);
      if (code === "Unimplemented") return undefined;
      if (code === undefined || signal.aborted) throw error;
      log.warn("The container runtime did not report its cgroup driver; it is asked again", { attempt, error });
    }
    await clock.sleep(betweenTriesMs, signal);
  }
}
