import type { Clock, Logger } from "../../ground/base/index.ts";
import { criCodeOf } from "./errors.ts";
import { CgroupDriver } from "./gen/runtime/v1/status.ts";
import type { RuntimeService } from "./services.ts";

const tries = 3;
const betweenTriesMs = 2_000;

/** The cgroup driver the runtime wants; undefined when it has no opinion and the configured one stays. */
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
      // One that has gone since it was found is waited for as one that comes late.
      if (code === undefined || (attempt >= tries && code !== "Unavailable")) throw error;
      log.warn("The container runtime did not report its cgroup driver", { attempt, tries, error });
    }
    await clock.sleep(betweenTriesMs, signal);
  }
}
