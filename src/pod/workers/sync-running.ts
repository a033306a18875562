import { isAbort } from "../../ground/base/index.ts";
import {
  graceSecondsOf,
  type IdentifiedPod,
  isTerminalPhase,
  type ObservedPod,
  type PodStatus,
} from "../../ground/model/index.ts";
import { type ApplyFailure, applyPlan, startsAnything } from "./apply.ts";
import { errorBackoffMs } from "./error-backoff.ts";
import { type PodPlan, planPod } from "./plan.ts";
import { resizesAnything } from "./plan-resize.ts";
import type { Running } from "./pod-state.ts";
import type { WorkerPorts } from "./ports.ts";
import { publishStatus } from "./publish-status.ts";
import type { StartSlots } from "./start-slots.ts";
import { move, type PodWorker, type SyncOutcome } from "./worker.ts";

const networkRetryMs = 1_000;
const nameRetryMs = 1_000;
/** How soon users see what has become of the containers that are up while others are still being started. */
const progressMs = 2_000;

/** What a sync needs of the collection of workers it belongs to. */
export interface RunningTools {
  readonly slots: StartSlots;
  /** Gives up the sync that is in progress at that time, for another one. */
  interruptAt(at: number): void;
  /** Whether a pod that had the name before may still be running. */
  isNameInUse(pod: IdentifiedPod): boolean;
}

/** Brings a wanted pod closer to running: look, report, plan, act, report again. `state` and `pod` are as it begins. */
export async function syncRunning(
  { worker, state, pod }: { readonly worker: PodWorker; readonly state: Running; readonly pod: IdentifiedPod },
  ports: WorkerPorts,
  tools: RunningTools,
  signal: AbortSignal,
): Promise<SyncOutcome> {
  const isKnownFromBefore = !worker.stale && ports.observer.latest(worker.uid) !== undefined;
  const observed = await observe(worker, pod, ports, signal);
  const status = await publishStatus(worker, pod, observed, "wanted", ports);
  if (isTerminalPhase(status.phase)) return end(worker, pod, ports);
  const deadline = activeDeadline(pod, status);
  if (deadline !== undefined && deadline <= ports.clock.now()) return endByDeadline(worker, pod, ports);
  if (deadline !== undefined) tools.interruptAt(deadline);

  const plan = makePlan(worker, pod, observed, ports);
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
  if (plan.sandbox.type === "create" && tools.isNameInUse(pod)) {
    const message = "the pod that had this name before has not ended yet";
    return { type: "retry", at: ports.clock.now() + nameRetryMs, reason: "NameInUse", message };
  }
  const network = pod.spec.hostNetwork === true ? undefined : ports.networkProblem();
  if (network !== undefined) {
    const message = `network is not ready: ${network}`;
    ports.recordEvent(pod, { type: "Warning", reason: "NetworkNotReady", message });
    return { type: "retry", at: ports.clock.now() + networkRetryMs, reason: "NetworkNotReady", message };
  }
  const waitMs = plan.sandbox.type === "create" ? worker.sandboxPace.waitMs(ports.clock.monotonic()) : 0;
  if (waitMs > 0) {
    const message = "a sandbox was made for the pod a moment ago, and cannot be used";
    return { type: "retry", at: ports.clock.now() + waitMs, reason: "SandboxChanged", message };
  }
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
  { worker, state, pod }: { readonly worker: PodWorker; readonly state: Running; readonly pod: IdentifiedPod },
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

/** Shows how far the pod has come for as long as the work takes: a slow image must not hide what already runs. */
async function whileReporting<Result>(
  worker: PodWorker,
  pod: IdentifiedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const { clock } = ports;
  let report = Promise.resolve();
  let isDone = false;
  const soon = (): { cancel(): void } =>
    clock.after(progressMs, () => {
      report = (async () => {
        if (worker.stale) await reportProgress(worker, pod, ports, signal);
        if (!isDone) timer = soon();
      })();
    });
  let timer = soon();
  try {
    return await work();
  } finally {
    isDone = true;
    timer.cancel();
    await report;
  }
}

async function reportProgress(
  worker: PodWorker,
  pod: IdentifiedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<void> {
  try {
    await publishStatus(worker, pod, await observe(worker, pod, ports, signal), "starting", ports);
  } catch (error) {
    if (isAbort(error, signal)) return;
    ports.log.debug(2, "Could not look how far a pod has come", { pod: pod.metadata.name, err: error });
  }
}

async function observe(
  worker: PodWorker,
  pod: IdentifiedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<ObservedPod> {
  let observed = ports.observer.latest(worker.uid);
  if (worker.stale || observed === undefined) {
    // Cleared first: whatever happens while we look calls for another look.
    worker.stale = false;
    try {
      observed = await ports.observer.inspect(worker.uid, signal);
    } catch (error) {
      worker.stale = true;
      throw error;
    }
  }
  ports.probes.ensure(pod);
  ports.probes.observe(pod, observed);
  return observed;
}

function makePlan(worker: PodWorker, pod: IdentifiedPod, observed: ObservedPod, ports: WorkerPorts): PodPlan {
  return planPod({
    pod,
    observed,
    hashOf: ports.hashOf,
    given: ports.resize.givenTo(worker.uid),
    probes: {
      liveness: (container) => ports.probes.result(worker.uid, container, "liveness"),
      startup: (container) => ports.probes.result(worker.uid, container, "startup"),
    },
  });
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

function activeDeadline(pod: IdentifiedPod, status: PodStatus | undefined): number | undefined {
  const { activeDeadlineSeconds } = pod.spec;
  const startTime = status?.startTime ?? pod.status?.startTime;
  if (activeDeadlineSeconds === undefined || startTime === undefined) return undefined;
  // The time is cut to whole seconds, and no pod may be ended early.
  return Date.parse(startTime) + (activeDeadlineSeconds + 1) * 1000;
}

function endByDeadline(worker: PodWorker, pod: IdentifiedPod, ports: WorkerPorts): SyncOutcome {
  const message = "Pod was active on the node longer than the specified deadline";
  ports.recordEvent(pod, { type: "Normal", reason: "DeadlineExceeded", message });
  move(worker, {
    type: "ended",
    now: ports.clock.monotonic(),
    isPastDeadline: true,
    cause: "evicted",
    graceSeconds: graceSecondsOf(pod),
    amendStatus: (status) => ({ ...status, phase: "Failed", reason: "DeadlineExceeded", message }),
  });
  return { type: "again" };
}
