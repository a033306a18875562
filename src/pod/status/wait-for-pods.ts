import { type Clock, formatDuration, Pause } from "../../ground/base/index.ts";
import type { Pod, PodUid } from "../../ground/model/index.ts";
import type { PodViews } from "./pod-views.ts";

/** The pods as somebody sees them who waits for them. */
export interface RunningPods {
  readonly views: Pick<PodViews, "pods" | "watchPods" | "ledger">;
  /** Every source has said which pods it wants. */
  sourcesReady(): boolean;
}

export interface PodOutcome {
  readonly pod: string;
  readonly ok: boolean;
  readonly text: string;
}

/** Waits until every pod found runs or has failed; pods that get nowhere count as failed when the time is up. */
export async function waitForPods(
  pods: RunningPods,
  options: { readonly clock: Clock; readonly timeoutMs: number },
  signal: AbortSignal,
): Promise<readonly PodOutcome[]> {
  const { clock, timeoutMs } = options;
  const pause = new Pause(clock);
  const unwatch = pods.views.watchPods(() => pause.cutShort());
  const deadline = clock.monotonic() + timeoutMs;
  try {
    for (;;) {
      signal.throwIfAborted();
      const found = pods.views.pods();
      const left = deadline - clock.monotonic();
      const open = found.filter((pod) => outcomeOf(pod) === undefined);
      if ((pods.sourcesReady() && open.length === 0) || left <= 0) {
        return found.map((pod) => outcomeOf(pod) ?? stuck(pod, pods, timeoutMs));
      }
      // Sources say nothing when they are through, so look for that too.
      await pause.wait(Math.min(left, 100), signal);
    }
  } finally {
    unwatch();
  }
}

function outcomeOf(pod: Pod): PodOutcome | undefined {
  const { phase, reason, message } = pod.status ?? {};
  const name = nameOf(pod);
  switch (phase) {
    case "Running":
      return {
        pod: name,
        ok: true,
        text: `Running${pod.status?.podIP === undefined ? "" : ` at ${pod.status.podIP}`}`,
      };
    case "Succeeded":
      return { pod: name, ok: true, text: "Succeeded" };
    case "Failed":
      return {
        pod: name,
        ok: false,
        text: ["Failed", reason, message].filter((part) => part !== undefined).join(": "),
      };
    default:
      return undefined;
  }
}

function stuck(pod: Pod, pods: RunningPods, timeoutMs: number): PodOutcome {
  const blocker = pods.views.ledger(pod.metadata?.uid as PodUid)?.blocker;
  const why = blocker === undefined ? (pod.status?.phase ?? "not started") : `${blocker.reason}: ${blocker.message}`;
  return { pod: nameOf(pod), ok: false, text: `not running after ${formatDuration(timeoutMs)}: ${why}` };
}

function nameOf(pod: Pod): string {
  return `${pod.metadata?.namespace}/${pod.metadata?.name}`;
}
