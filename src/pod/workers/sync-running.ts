import { graceSecondsOf, type IdentifiedPod, isTerminalPhase, type ObservedPod } from "../../ground/model/index.ts";
import { activeDeadline, endByDeadline } from "./active-deadline.ts";
import { type ApplyFailure, applyPlan, startsAnything } from "./apply.ts";
import { errorBackoffMs } from "./error-backoff.ts";
import { type PodPlan, planPod } from "./plan.ts";
import { noResize, resizesAnything } from "./plan-resize.ts";
import type { Running } from "./pod-state.ts";
import { move, type PodWorker, type SyncOutcome } from "./pod-worker.ts";
import type { WorkerPorts } from "./ports.ts";
import { type BegunStatus, beginStatus, publishStatus } from "./publish-status.ts";
import { forgetSpared } from "./replaced.ts";
import { observe, whileReporting } from "./report-progress.ts";
import type { StartSlots } from "./start-slots.ts";

const networkRetryMs = 1_000;
const nameRetryMs = 1_000;

/** What a sync needs of the collection of workers it belongs to. */
export interface RunningTools {
  readonly slots: StartSlots;
  /** Gives up the sync that is in progress at that time, for another one. */
  interruptAt(at: number): void;
  /** Whether a pod that had the name before may still be running. */
  isNameInUse(pod: IdentifiedPod): boolean;
}

/** The pod and what it has come to, as a sync begins. */
interface Begun {
  readonly worker: PodWorker;
  readonly state: Running;
  readonly pod: IdentifiedPod;
}

/** What a sync has found out before it acts. */
interface Findings extends Begun, BegunStatus {
  readonly observed: ObservedPod;
  readonly plan: PodPlan;
  /** Whether it was not looked at just now. */
  readonly isKnownFromBefore: boolean;
}

/** Brings a wanted pod closer to running: look, report, plan, act, report again. */
export async function syncRunning(
  begun: Begun,
  ports: WorkerPorts,
  tools: RunningTools,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const { worker, pod } = begun;
  const isKnownFromBefore = !worker.stale && ports.observer.latest(worker.uid) !== undefined;
  const observed = await observe(worker, pod, ports, signal);
  const report = await beginStatus(worker, pod, observed, "wanted", ports);
  const plan = makePlan(worker, pod, observed, ports);
  forgetSpared(worker, observed, plan);
  // What is given in place rests on the promise alone. That it is under way is kept and told meanwhile; an agent that
  // ends before finds promise and gift in their files, and tells of the rest. All else waits until users know.
  if (!isResizeAlone(plan)) await report.told;
  try {
    return await follow({ ...begun, ...report, observed, plan, isKnownFromBefore }, ports, tools, signal);
  } finally {
    await report.told;
  }
}

async function follow(
  { worker, state, pod, observed, plan, status, told, isKnownFromBefore }: Findings,
  ports: WorkerPorts,
  tools: RunningTools,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  if (isTerminalPhase(status.phase)) return end(worker, pod, ports);
  const deadline = activeDeadline(pod, status);
  if (deadline !== undefined && deadline <= ports.clock.now()) return endByDeadline(worker, pod, ports);
  if (deadline !== undefined) tools.interruptAt(deadline);

  if (state.isPrepared || isIdle(plan)) ports.setup.keep(pod);
  if (isIdle(plan)) {
    await ports.resize.followPod(pod);
    return { type: "idle" };
  }
  if (plan.kills.length > 0 && isKnownFromBefore) {
    // One that ended a while ago fails its probes, too: what nobody has noticed yet must not be taken for a reason to
    // restart it, whatever its restart policy.
    worker.stale = true;
    return { type: "again" };
  }
  if (plan.killPod && plan.sandbox.type === "none") {
    return stopRemains({ worker, state, pod }, plan, observed, ports, signal);
  }
  const obstacle = obstacleTo(worker, pod, plan, ports, tools);
  if (obstacle !== undefined) return obstacle;
  // Before it takes a slot: a driver may take its time, and pods that do not need it must not wait for it.
  const hasSandbox = plan.sandbox.type !== "create";
  if (!hasSandbox || startsAnything(plan)) await ports.setup.prepareClaims(pod, hasSandbox, signal);
  const act = async (): Promise<readonly ApplyFailure[]> => {
    if (!state.isPrepared) {
      await ports.setup.prepare(pod, signal);
      move(worker, { type: "prepared" });
    }
    const apply = (): Promise<readonly ApplyFailure[]> => applyPlan(worker, pod, plan, observed, ports, signal);
    // A container killed to be replaced must not be reported as ended meanwhile.
    return plan.kills.length > 0 ? apply() : whileReporting(worker, pod, ports, signal, apply);
  };
  const failures = await (plan.sandbox.type === "create" ? tools.slots.run(act, signal) : act());
  // Before anybody is told that a resize is done.
  await ports.resize.followPod(pod);
  await told;
  return reportAgain(worker, pod, failures, ports, signal);
}

/** What keeps a plan from being carried out now. */
function obstacleTo(
  worker: PodWorker,
  pod: IdentifiedPod,
  { sandbox }: PodPlan,
  ports: WorkerPorts,
  tools: RunningTools,
): SyncOutcome | undefined {
  if (sandbox.type === "create" && tools.isNameInUse(pod)) {
    const message = "the pod that had this name before has not ended yet";
    return { type: "retry", at: ports.clock.now() + nameRetryMs, reason: "NameInUse", message };
  }
  const network = pod.spec.hostNetwork === true ? undefined : ports.networkProblem();
  if (network !== undefined) {
    const message = `network is not ready: ${network}`;
    ports.recordEvent(pod, { type: "Warning", reason: "NetworkNotReady", message });
    return { type: "retry", at: ports.clock.now() + networkRetryMs, reason: "NetworkNotReady", message };
  }
  const waitMs = sandbox.type === "create" ? worker.sandboxPace.waitMs(ports.clock.monotonic()) : 0;
  if (waitMs <= 0) return undefined;
  const message = "a sandbox was made for the pod a moment ago, and cannot be used";
  return { type: "retry", at: ports.clock.now() + waitMs, reason: "SandboxChanged", message };
}

/** Tells what has become of the pod, and what is to be done next. */
async function reportAgain(
  worker: PodWorker,
  pod: IdentifiedPod,
  failures: readonly ApplyFailure[],
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  worker.stale = true;
  const after = await observe(worker, pod, ports, signal);
  const ended = isTerminalPhase((await publishStatus(worker, pod, after, "wanted", ports)).phase);
  if (ended) return end(worker, pod, ports);
  // The first that may be tried again decides when; the others are tried with it.
  const [failure] = failures.toSorted((a, b) => a.nextTryAt - b.nextTryAt);
  if (failure !== undefined) {
    const { nextTryAt: at, reason, message } = failure;
    return { type: "retry", at, reason, message };
  }
  worker.failures = 0;
  return { type: startsAnything(makePlan(worker, pod, after, ports)) ? "again" : "idle" };
}

/**
 * Stops what is left of a pod that starts nothing any more, though its status may not call it ended. Once per state of
 * affairs: where stopping changes nothing, doing it again at once would go on for ever.
 */
async function stopRemains(
  { worker, state, pod }: Begun,
  plan: PodPlan,
  observed: ObservedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const remains = [...observed.sandboxes, ...observed.containers].map((each) => `${each.id} ${each.state}`).join();
  if (remains !== state.stoppedRemains) {
    await applyPlan(worker, pod, plan, observed, ports, signal);
    move(worker, { type: "remainsStopped", remains });
    return { type: "again" };
  }
  const isStopped = !observed.containers.some((each) => each.state === "running" || each.state === "unknown");
  if (isStopped && !observed.sandboxes.some((each) => each.state === "ready")) return { type: "idle" };
  move(worker, { type: "remainsStopped", remains: undefined });
  worker.failures++;
  const at = ports.clock.now() + errorBackoffMs(worker.failures);
  return { type: "retry", at, reason: "SyncError", message: "the runtime does not stop what is left of the pod" };
}

function makePlan(worker: PodWorker, pod: IdentifiedPod, observed: ObservedPod, ports: WorkerPorts): PodPlan {
  return planPod({
    pod,
    observed,
    hashOf: ports.hashOf,
    given: ports.resize.givenTo(worker.uid),
    isReplaced: ({ name, id }) => worker.replaced.get(name) === id,
    probes: {
      liveness: (container) => ports.probes.result(worker.uid, container, "liveness"),
      startup: (container) => ports.probes.result(worker.uid, container, "startup"),
    },
  });
}

/** Whether running containers get other resources, and nothing else is done. */
function isResizeAlone(plan: PodPlan): boolean {
  return resizesAnything(plan.resize) && isIdle({ ...plan, resize: noResize });
}

function isIdle(plan: PodPlan): boolean {
  if (resizesAnything(plan.resize)) return false;
  return (
    !plan.killPod &&
    plan.restartAll === undefined &&
    plan.kills.length === 0 &&
    plan.sandbox.type !== "create" &&
    !startsAnything(plan)
  );
}

function end(worker: PodWorker, pod: IdentifiedPod, { clock }: WorkerPorts): SyncOutcome {
  const ended = { type: "ended", now: clock.monotonic(), isPastDeadline: false } as const;
  move(worker, { ...ended, cause: "completed", graceSeconds: graceSecondsOf(pod) });
  return { type: "again" };
}
