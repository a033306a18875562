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
  withForeignConditions,
} from "../status/index.ts";
import { planSandbox } from "./plan-sandbox.ts";
import type { WorkerPorts } from "./ports.ts";
import type { PodWorker } from "./worker.ts";

/** "starting": as wanted, but containers are being started right now, so nothing has ended for good. */
export type Teardown = "wanted" | "starting" | "stopped" | "final";

/**
 * Computes the pod's status from what is observed now, and hands it on. What is returned may say that the pod has
 * ended while what is handed on does not yet: whoever reads of a pod's end takes it that nothing of it runs any more.
 */
export async function publishStatus(
  worker: PodWorker,
  pod: IdentifiedPod,
  observed: ObservedPod,
  teardown: Teardown,
  ports: WorkerPorts,
): Promise<PodStatus> {
  const { uid } = worker;
  await ports.terminationTexts.prepare(uid, observed.containers);
  const isWanted = teardown === "wanted" || teardown === "starting";
  const isRunning = observed.containers.some(({ state }) => state === "running");
  const input: StatusInput = {
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
      podLevel: await ports.resize.podLevel(pod, isRunning),
      // What was said of an earlier version of the spec says nothing of this one.
      error: worker.resizeError?.generation === pod.metadata.generation ? worker.resizeError?.message : undefined,
    },
    deviceHealth: (container) => ports.deviceHealth?.(pod, container) ?? [],
    tornDown: !isWanted,
    sandboxReady: isWanted && planSandbox(pod, observed).type === "keep",
  };
  const computed = computePodStatus(input);
  const amended = amend(worker, computed, isWanted);
  const status = teardown === "final" ? finalPodStatus(input, amended) : amended;
  if (teardown === "starting" && isTerminalPhase(status.phase)) return status;
  const shown = ports.setup.holdsClaims(uid) || isRunning ? withheld(status, input) : status;
  const kept = ports.statuses.accepts(pod, shown) ? shown : (ports.statuses.get(uid) ?? shown);
  const saved = ports.checkpoints.save(uid, { status: kept, crashBackoff: worker.crashBackoff.snapshot() });
  // Kept before it is shown: what users have seen must not be forgotten by an agent that dies now. What has stopped for
  // good is read off the same dead containers again, so nobody has to wait for the disk.
  if (isWanted) await saved;
  ports.statuses.set(pod, shown);
  await saved;
  tellOfResize(pod, input, kept, ports);
  return status;
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
  if (accepted !== undefined) ports.resize.told(uid);
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
 * for too long has failed whatever it made of it.
 */
function amend({ state }: PodWorker, computed: PodStatus, isWanted: boolean): PodStatus {
  if (state.step === "running" || state.step === "finished") return computed;
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
