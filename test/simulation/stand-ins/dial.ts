import type { Clock } from "../../../src/ground/base/index.ts";
import { neighbours } from "../machine/machine.ts";

const roundTripMs = 0.3;

/** A connection to a pod; who is silent costs all the time there is. */
export async function dial(
  host: string,
  port: number,
  timeoutMs: number | undefined,
  clock: Clock,
  signal: AbortSignal,
): Promise<"accepts" | "refuses" | "is silent"> {
  await clock.sleep(roundTripMs, signal);
  const outcome = neighbours().dial(host, port);
  if (outcome === "is silent") await clock.sleep(timeoutMs ?? 3_600_000, signal);
  return outcome;
}
