import {
  type IdentifiedPod,
  isTerminalPhase,
  type ObservedPod,
  type PodStatus,
  uidOf,
} from "../../ground/model/index.ts";
import type { ProbeResult } from "../probes/index.ts";
import {
  computePodStatus,
  finalPodStatus,
  resizeEvent,
  type StatusInput,
  unmadeStatus,
  withForeignConditions,
} from "../status/index.ts";
import { planSandbox } from "./plan-sandbox.ts";
import type { PodWorker } from "./pod-worker.ts";
import type { PodCheckpoint, WorkerPorts } from "./ports.ts";

/** "starting": as wanted, but containers are being started right now, so nothing has ended for good. */
export type Teardown = "wanted" | "starting" | "stopped" | "final";

/** As `beginStatus`, and resolves when it is kept and handed on. */
export async function publishStatus(...now: Parameters<typeof beginStatus>): Promise<PodStatus> {
  const { status, told } = await beginStatus(...now);
  await told;
  return status;
}

/** As `publishStatus`, of a pod whose containers have stopped. It goes, whether or not anybody can say how it ended. */
export async function publishEnd(
  worker: PodWorker,
  pod: IdentifiedPod,
  observed: ObservedPod,
  teardown: "stopped" | "final",
  ports: WorkerPorts,
): Promise<void> {
  try {
    await publishStatus(worker, pod, observed, teardown, ports);
  } catch (error) {
    const { name, namespace } = pod.metadata;
    ports.log.error("Could not make the status of a pod that has ended; calling it failed", error, {
      ...{ pod: name, namespace },
    });
    const status = unmadeStatus(ports.statuses.get(worker.uid), error);
    const saved = ports.checkpoints.save(worker.uid, checkpointOf(worker, status));
    ports.statuses.set(pod, status);
    await saved;
  }
}

/** A status that is on its way to the disk and to who waits for it. */
export interface BegunStatus {
  readonly status: PodStatus;
  /** Resolves when it is kept and handed on. Its failure is no failure that nobody handles until somebody waits. */
  readonly told: Promise<void>;
}

/**
 * Computes the pod's status from what is observed now, and begins to hand it on. What is returned may say that the pod
 * has ended while what is handed on does not yet: whoever reads of a pod's end takes it that nothing of it runs any more.
 */
export async function beginStatus(
  worker: PodWorker,
  pod: IdentifiedPod,
  observed: ObservedPod,
  teardown: Teardown,
  ports: WorkerPorts,
): Promise<BegunStatus> {
  const input = await inputOf(worker, pod, observed, teardown, ports);
  const isWanted = isStillWanted(teardown);
  const computed = computePodStatus(input);
  const amended = amend(worker, computed, input, isWanted);
  const status = teardown === "final" ? finalPodStatus(input, amended) : amended;
  if (teardown === "starting" && isTerminalPhase(status.phase)) return { status, told: Promise.resolve() };
  const shown = ports.setup.holdsClaims(worker.uid) || isRunning(observed) ? withheld(status, input) : status;
  const told = keepAndShow(worker, pod, input, { shown, isWanted }, ports);
  told.catch(() => {});
  return { status, told };
}

async function keepAndShow(
  worker: PodWorker,
  pod: IdentifiedPod,
  input: StatusInput,
  { shown, isWanted }: { readonly shown: PodStatus; readonly isWanted: boolean },
  ports: WorkerPorts,
): Promise<void> {
  const { uid } = worker;
  const kept = ports.statuses.accepts(pod, shown) ? shown : (ports.statuses.get(uid) ?? shown);
  const saved = ports.checkpoints.save(uid, checkpointOf(worker, kept));
  // Kept before it is shown: what users have seen must not be forgotten by an agent that dies now. What has stopped for
  // good is read off the same dead containers again, so nobody has to wait for the disk.
  if (isWanted) await saved;
  ports.statuses.set(pod, shown);
  await saved;
  tellOfResize(pod, input, kept, ports);
}

/** Keeps why the node takes the pod off, or what it replaces. Where the disk is full, nobody can. */
export async function keepDecision(worker: PodWorker, ports: WorkerPorts): Promise<void> {
  await ports.checkpoints.save(worker.uid, checkpointOf(worker, ports.statuses.get(worker.uid)));
}

function checkpointOf({ state, crashBackoff, replaced }: PodWorker, status: PodStatus | undefined): PodCheckpoint {
  const decision = state.step === "terminating" || state.step === "terminated" ? state.decision : undefined;
  return {
    ...(status && { status }),
    crashBackoff: crashBackoff.snapshot(),
    ...(decision && { decision }),
    ...(replaced.size > 0 && { replaced: Object.fromEntries(replaced) }),
  };
}

async function inputOf(
  worker: PodWorker,
  pod: IdentifiedPod,
  observed: ObservedPod,
  teardown: Teardown,
  ports: WorkerPorts,
): Promise<StatusInput> {
  const { uid } = worker;
  await ports.terminationTexts.prepare(uid, observed.containers);
  const isWanted = isStillWanted(teardown);
  const podLevel = await ports.resize.podLevel(pod, isRunning(observed));
  return {
    pod,
    observed,
    previous: previousStatus(ports.statuses.get(uid), pod),
    flags: {
      started: (container) => isPassed(ports.probes.result(uid, container, "startup")),
      ready: (container) => isPassed(ports.probes.result(uid, container, "readiness")),
    },
    waitingReason: (name) => worker.waiting.get(name),
    terminationText: (container) => ports.terminationTexts.of(container, uid),
    node: ports.node(),
    now: ports.clock.now(),
    resize: {
      pending: ports.resize.pending(uid),
      accepted: ports.resize.accepted(pod),
      given: ports.resize.givenTo(uid),
      isUnderWay: worker.isResizing,
      podLevel,
      // What was said of an earlier version of the spec says nothing of this one.
      error: worker.resizeError?.generation === pod.metadata.generation ? worker.resizeError?.message : undefined,
    },
    deviceHealth: (container) => ports.deviceHealth?.(pod, container) ?? [],
    isReplaced: ({ name, id }) => worker.replaced.get(name) === id,
    tornDown: !isWanted,
    sandboxReady: isWanted && planSandbox(pod, observed).type === "keep",
  };
}

function isStillWanted(teardown: Teardown): boolean {
  return teardown === "wanted" || teardown === "starting";
}

function isRunning({ containers }: ObservedPod): boolean {
  return containers.some(({ state }) => state === "running");
}

/** Says once that a resize is done: when all that runs has it, be it that nothing runs. */
function tellOfResize(
  pod: IdentifiedPod,
  { previous, resize: { accepted } }: StatusInput,
  kept: PodStatus,
  ports: WorkerPorts,
): void {
  const uid = uidOf(pod);
  const shown = resizeShown(kept);
  ports.metrics?.resizing(uid, shown !== undefined);
  if (shown !== undefined) return;
  if (accepted !== undefined) ports.resize.told(uid, accepted.generation);
  const before = accepted ?? resizeShown(previous);
  if (before === undefined || isTerminalPhase(kept.phase)) return;
  ports.recordEvent(pod, resizeEvent("ResizeCompleted", pod, before));
}

/** The resize that a status says is under way. */
function resizeShown(status: PodStatus | undefined): { readonly generation: number | undefined } | undefined {
  const found = status?.conditions?.find(({ type, status }) => type === "PodResizeInProgress" && status === "True");
  return found === undefined ? undefined : { generation: found.observedGeneration };
}

/** A container without such a probe has nothing to pass. */
function isPassed(result: ProbeResult | undefined): boolean {
  return result === undefined || result === "success";
}

/**
 * Says why the node ends the pod. Once its containers have stopped, how they ended says whether it failed, as it does
 * for the kubelet: one that was evicted, preempted or ended with its node, and ended well in its grace, has succeeded.
 * Then the words for a failure are left out, and only its conditions and events tell what happened. One that was active
 * for too long has failed whatever it made of it. One that had succeeded before anybody decided to end it stays so.
 */
function amend(
  { state }: PodWorker,
  computed: PodStatus,
  { previous, pod }: StatusInput,
  isWanted: boolean,
): PodStatus {
  if (state.step === "running" || state.step === "finished") return computed;
  if (previous?.phase === "Succeeded" || pod.status?.phase === "Succeeded") return computed;
  const amended = state.amendStatus?.(computed) ?? computed;
  const endedWell = !isWanted && !state.isPastDeadline && computed.phase === "Succeeded";
  if (!endedWell) return amended;
  const { reason: _reason, message: _message, ...rest } = amended;
  return { ...rest, phase: computed.phase };
}

/** Who reads that a pod has ended may give what it used to others. */
function withheld(status: PodStatus, { previous }: StatusInput): PodStatus {
  if (!isTerminalPhase(status.phase)) return status;
  const { reason: _reason, message: _message, ...rest } = status;
  const conditions = (status.conditions ?? []).filter(({ reason }) => reason !== "TerminationByKubelet");
  return {
    ...rest,
    conditions,
    phase: previous?.phase ?? "Pending",
    ...(previous?.reason === undefined ? {} : { reason: previous.reason }),
    ...(previous?.message === undefined ? {} : { message: previous.message }),
  };
}

function previousStatus(own: PodStatus | undefined, pod: IdentifiedPod): PodStatus | undefined {
  return own === undefined ? pod.status : withForeignConditions(own, pod.status);
}
