import { type Clock, isAbort } from "../../ground/base/index.ts";
import { criCodeOf } from "./errors.ts";
import { ContainerState } from "./gen/runtime/v1/container.ts";
import { PodSandboxState } from "./gen/runtime/v1/sandbox.ts";
import type { RuntimeService } from "./services.ts";

const firstLookMs = 5;
const longestPauseMs = 500;
const giveUpMs = 10_000;

/**
 * Resolves once the runtime's answers agree that the container or sandbox has stopped. containerd publishes an exit
 * before its CRI plugin has taken notice: asked at once, it still says "running".
 */
export async function untilStopped(
  id: string,
  { runtime, clock }: { runtime: Pick<RuntimeService, "containerStatus" | "podSandboxStatus">; clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const startedAt = clock.monotonic();
  for (
    let pauseMs = firstLookMs;
    clock.monotonic() - startedAt < giveUpMs;
    pauseMs = Math.min(pauseMs * 2, longestPauseMs)
  ) {
    if (!(await isRunning(id, runtime, signal))) return;
    await clock.sleep(pauseMs, signal);
  }
}

async function isRunning(
  id: string,
  runtime: Pick<RuntimeService, "containerStatus" | "podSandboxStatus">,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const { status } = await runtime.containerStatus({ containerId: id, verbose: false }, { signal });
    return status?.state === ContainerState.CONTAINER_RUNNING;
  } catch (error) {
    if (criCodeOf(error) !== "NotFound") return notTold(error, signal);
  }
  try {
    const { status } = await runtime.podSandboxStatus({ podSandboxId: id, verbose: false }, { signal });
    return status?.state === PodSandboxState.SANDBOX_READY;
  } catch (error) {
    return criCodeOf(error) === "NotFound" ? false : notTold(error, signal);
  }
}

/** A runtime that cannot tell now may soon. */
function notTold(error: unknown, signal: AbortSignal): true {
  if (isAbort(error, signal) || criCodeOf(error) === undefined) throw error;
  return true;
}
