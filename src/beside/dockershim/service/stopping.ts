import { withDeadline } from "../../../ground/base/index.ts";
import { EngineError, isAbsent, isClash } from "../engine/index.ts";
import type { ShimContext } from "./context.ts";

type StopPorts = Pick<ShimContext, "engine" | "clock">;

/**
 * Asks a container to end and kills it when the grace is over. The waiting is ours, not Docker's: a caller that gives up
 * leaves nothing behind that would kill the container later.
 */
export async function stopRunning(
  ports: StopPorts,
  container: { readonly id: string; readonly stopSignal: string },
  graceMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { engine, clock } = ports;
  const { id, stopSignal } = container;
  if (graceMs <= 0) return await killRunning(ports, id, signal);
  await tell(ports, id, stopSignal === "" ? "SIGTERM" : stopSignal, signal);
  const over = new Error("the grace is over");
  try {
    await withDeadline(
      clock,
      graceMs,
      () => over,
      signal,
      (bounded) => engine.waitContainer(id, bounded),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (isAbsent(error)) return;
    if (error !== over) throw error;
    await killRunning(ports, id, signal);
  }
}

export async function killRunning(ports: StopPorts, id: string, signal: AbortSignal): Promise<void> {
  await tell(ports, id, "SIGKILL", signal);
  await ports.engine.waitContainer(id, signal).catch((error: unknown) => {
    if (!isAbsent(error)) throw error;
  });
}

async function tell({ engine }: StopPorts, id: string, killSignal: string, signal: AbortSignal): Promise<void> {
  try {
    await engine.killContainer(id, killSignal, signal);
  } catch (error) {
    // It has ended in the meantime.
    if (!isAbsent(error) && !isClash(error) && !saysNotRunning(error)) throw error;
  }
}

function saysNotRunning(error: unknown): boolean {
  return error instanceof EngineError && /is not running/.test(error.message);
}
