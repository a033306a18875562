import { criCodeOf, type RuntimeService } from "../cri/index.ts";
import type { ExecInContainer } from "../probes/index.ts";

/** Runs commands in containers for probes and hooks. */
export function execThrough(runtime: RuntimeService): ExecInContainer {
  return async (containerId, command, timeoutMs, signal) => {
    const timeout = BigInt(Math.ceil(timeoutMs / 1000));
    try {
      const { exitCode, stdout, stderr } = await runtime.execSync(
        { containerId, cmd: [...command], timeout },
        { signal },
      );
      return { type: "exited", exitCode, stdout, stderr };
    } catch (error) {
      if (criCodeOf(error) === "DeadlineExceeded") return { type: "timedOut" };
      throw error;
    }
  };
}
