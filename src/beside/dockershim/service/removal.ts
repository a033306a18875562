import { isAbsent, isClash } from "../engine/index.ts";
import type { ShimContext } from "./context.ts";

const lookAgainMs = 50;

/** Removes a container, running or not, and what Docker made for it. What is gone or about to go is fine. */
export async function removeWholly(
  { engine, clock }: Pick<ShimContext, "engine" | "clock">,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await engine.removeContainer(id, signal);
      return;
    } catch (error) {
      if (isAbsent(error)) return;
      // "removal of container … is already in progress": wait for whoever is at it.
      if (!isClash(error) || !(error as Error).message.includes("already in progress")) throw error;
      await clock.sleep(lookAgainMs, signal);
    }
  }
}
