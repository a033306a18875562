import type { Clock, Logger } from "../../ground/base/index.ts";
import {
  describePod,
  endedByShutdown,
  type IdentifiedPod,
  type PodStatus,
  type PodUid,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import { planShutdown, type ShutdownGroup } from "./plan.ts";

const lookEveryMs = 100;
/** A source that says nothing, such as an API server that is away, may take so much of the time of pods that are known. */
const knowingShare = 0.25;

export interface EndPodsPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly recordPodEvent: RecordPodEvent;
  /** Every source has spoken, and every pod that runs here has its worker. */
  readonly arePodsKnown: () => boolean;
  /** Pods whose containers are wanted or still run. */
  readonly activePods: () => readonly IdentifiedPod[];
  readonly terminate: (
    uid: PodUid,
    request: {
      readonly cause: "evicted";
      readonly graceSeconds: number;
      readonly amendStatus: (status: PodStatus) => PodStatus;
    },
  ) => void;
  /** How far the pod has come; undefined: nothing of it is here. */
  readonly stepOf: (uid: PodUid) => "running" | "terminating" | "terminated" | "finished" | undefined;
  /** The API server has the pod's last status, or there is nobody to be told. */
  readonly isReported: (uid: PodUid) => boolean;
  /** The API server knows that the node takes no more pods, or there is none. */
  readonly isNodeReported: () => boolean;
}

/**
 * Ends all pods, one group after the other, each within the time of its group, and waits until everybody who has to know
 * how they ended does, at most until `deadline` (monotonic). What did not get there in time is said. `ended` gets the
 * pods whose end has begun.
 */
export async function endPods(
  groups: readonly ShutdownGroup[],
  deadline: number,
  ended: Map<PodUid, IdentifiedPod>,
  ports: EndPodsPorts,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log, arePodsKnown, isReported, isNodeReported } = ports;
  const began = clock.monotonic();
  await until(arePodsKnown, began + Math.max(0, deadline - began) * knowingShare, clock, signal);
  if (!arePodsKnown()) log.warn("Not every pod is known; those that are end now");
  for (const [index, { priority, seconds }] of groups.entries()) {
    const due = beginGroup(groups, index, ended, ports);
    if (due.length === 0) continue;
    log.info("Ending pods because the node shuts down", { priority, seconds, pods: names(due) });
    const groupDeadline = Math.min(deadline, clock.monotonic() + seconds * 1000);
    await until(() => due.every((pod) => isReleased(pod, ports)), groupDeadline, clock, signal);
    const late = due.filter((pod) => !isReleased(pod, ports));
    if (late.length > 0) log.info("Their time is over; ending the next pods", { priority, seconds, late: names(late) });
  }
  const all = [...ended.values()];
  const isOver = (pod: IdentifiedPod): boolean => isReleased(pod, ports) && isReported(uidOf(pod));
  await until(() => isNodeReported() && all.every(isOver), deadline, clock, signal);
  sayWhatWasCut(all, ports);
}

/** Those whose turn it is now, and those of earlier groups that have only now been found. */
function beginGroup(
  groups: readonly ShutdownGroup[],
  index: number,
  ended: Map<PodUid, IdentifiedPod>,
  { clock, activePods, terminate }: EndPodsPorts,
): readonly IdentifiedPod[] {
  const due = planShutdown(groups, activePods())
    .slice(0, index + 1)
    .flatMap(({ pods }) => pods)
    .filter(({ pod }) => !ended.has(uidOf(pod)));
  for (const { pod, graceSeconds } of due) {
    ended.set(uidOf(pod), pod);
    const amendStatus = (status: PodStatus): PodStatus => endedByShutdown(status, clock.now());
    terminate(uidOf(pod), { cause: "evicted", graceSeconds, amendStatus });
  }
  return due.map(({ pod }) => pod);
}

/** Its containers have stopped, and its volumes and cgroup have been given back. */
function isReleased(pod: IdentifiedPod, { stepOf }: EndPodsPorts): boolean {
  const step = stepOf(uidOf(pod));
  return step === undefined || step === "finished";
}

function sayWhatWasCut(all: readonly IdentifiedPod[], ports: EndPodsPorts): void {
  const { log, stepOf, isReported, isNodeReported, recordPodEvent } = ports;
  const stepsOf = (...steps: readonly string[]): readonly IdentifiedPod[] =>
    all.filter((pod) => steps.includes(stepOf(uidOf(pod)) ?? ""));
  const running = stepsOf("running", "terminating");
  const releasing = stepsOf("terminated");
  const unreported = all.filter((pod) => !isReported(uidOf(pod)));
  for (const pod of running) {
    const message = "Container runtime did not kill the pod within specified grace period.";
    recordPodEvent(pod, { type: "Warning", reason: "ExceededGracePeriod", message });
  }
  if (running.length > 0) log.warn("Pods are cut off: they have not ended in time", { pods: names(running) });
  if (releasing.length > 0) log.warn("Volumes of pods are not released in time", { pods: names(releasing) });
  if (unreported.length > 0) log.warn("The API server was not told how pods ended", { pods: names(unreported) });
  if (!isNodeReported()) log.warn("The API server was not told that the node shuts down");
  if (running.length + releasing.length + unreported.length === 0) {
    log.info("All pods have ended, the machine may turn off", { pods: all.length });
  }
}

/** Resolves when the condition holds or the time has come. */
async function until(condition: () => boolean, at: number, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!condition()) {
    const leftMs = at - clock.monotonic();
    if (leftMs <= 0) return;
    await clock.sleep(Math.min(lookEveryMs, leftMs), signal);
  }
  signal.throwIfAborted();
}

const mostNames = 50;

function names(pods: readonly IdentifiedPod[]): string {
  const more = pods.length > mostNames ? ` and ${pods.length - mostNames} more` : "";
  return `${pods.slice(0, mostNames).map(describePod).join(" ")}${more}`;
}
