import { withDeadline } from "../../../ground/base/index.ts";
import type { DashboardPorts } from "../ports.ts";

/** Whoever looks looks again soon; a runtime that is slow to say how far it is delays nothing else. */
const withinMs = 500;

/** Pulls under way; none where the runtime does not answer in time. */
export async function lookAtPulls(
  { images, clock }: Pick<DashboardPorts, "images" | "clock">,
  signal: AbortSignal,
): ReturnType<DashboardPorts["images"]["pulls"]> {
  const late = (): Error => new Error("the runtime does not answer");
  try {
    return await withDeadline(clock, withinMs, late, signal, (bounded) => images.pulls(bounded));
  } catch {
    return [];
  }
}
