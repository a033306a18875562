import { CriError, type RuntimeService } from "../../connections/cri/index.ts";
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
      if (!(error instanceof CriError)) throw error;
      if (error.code === "DeadlineExceeded") return { type: "timedOut" };
      // Users know such failures by the text that gRPC gives them.
      throw new Error(error.rpcText, { cause: error });
    }
  };
}
