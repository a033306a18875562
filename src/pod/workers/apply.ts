import { aFewAtOnce, cutText, formatDuration, mapAtMost, messageOf } from "../../ground/base/index.ts";
import {
  containerGraceSeconds,
  containerNamed,
  containersOf,
  describePod,
  fieldPathOf,
  type IdentifiedPod,
  isSidecar,
  named,
  newestOf,
  type ObservedContainer,
  type ObservedPod,
  ownGraceSeconds,
  type PodContainer,
  type SandboxId,
  type StartReason,
} from "../../ground/model/index.ts";
import { StartError } from "../runtime/index.ts";
import { resizeEvent, type WaitingReason } from "../status/index.ts";
import { backoffMessage, newestEnded } from "./crash-backoff.ts";
import { errorBackoffMs } from "./error-backoff.ts";
import type { PodPlan } from "./plan.ts";
import { noResize, resizesAnything } from "./plan-resize.ts";
import type { PodWorker } from "./pod-worker.ts";
import type { WorkerPorts } from "./ports.ts";
import { keepDecision } from "./publish-status.ts";
import { noteReplaced } from "./replaced.ts";
import { resizePod } from "./resize-order.ts";

/** What a runtime, a registry or a hook complains of ends in status, checkpoint and ledger: enough to read, no more. */
const longestMessageBytes = 4 * 1024;

/** What stood in the way, for the retry and for people who ask why. */
export interface ApplyFailure {
  readonly reason: StartReason | "ResizeError";
  readonly message: string;
  readonly nextTryAt: number;
}

/** Carries out a plan, top to bottom. Failures of single containers are collected; anything else rises. */
export async function applyPlan(
  worker: PodWorker,
  pod: IdentifiedPod,
  plan: PodPlan,
  observed: ObservedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<readonly ApplyFailure[]> {
  worker.stale = true;
  const failure = await keepPromise(worker, pod, plan, ports, signal);
  if (failure === undefined) return await carryOut(worker, pod, plan, observed, ports, signal);
  return [failure, ...(await carryOut(worker, pod, withoutResizes(plan), observed, ports, signal))];
}

/** One that restarts for a promise that the next agent does not know would be restarted back. */
async function keepPromise(
  worker: PodWorker,
  pod: IdentifiedPod,
  { kills }: PodPlan,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<ApplyFailure | undefined> {
  if (!kills.some(({ because }) => because === "resized")) return undefined;
  try {
    await ports.resize.promiseKept(signal);
    return undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    return resizeFailed(worker, pod, error, ports);
  }
}

/** All else that the pod needs must not wait for a promise that can't be kept now. */
function withoutResizes(plan: PodPlan): PodPlan {
  const resized = plan.kills.filter(({ because }) => because === "resized");
  const isLeft = (name: string): boolean => !resized.some(({ container }) => container.name === name);
  return {
    ...plan,
    kills: plan.kills.filter((kill) => !resized.includes(kill)),
    startInit: plan.startInit.filter(isLeft),
    startRegular: plan.startRegular.filter(isLeft),
    resize: noResize,
  };
}

async function carryOut(
  worker: PodWorker,
  pod: IdentifiedPod,
  plan: PodPlan,
  observed: ObservedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<readonly ApplyFailure[]> {
  if (noteReplaced(worker, pod, plan, observed)) await keepDecision(worker, ports);
  if (plan.killPod) await killAll(worker, pod, plan, observed, ports, signal);
  else await killSome(worker, pod, plan, ports, signal);
  if (plan.sandbox.type === "none") return [];
  if (plan.restartAll !== undefined) return restartAll(worker, pod, plan.restartAll, observed, ports, signal);
  if (plan.sandbox.type === "keep") {
    const attempt = observed.sandboxes[0]?.attempt ?? 0;
    return startAll(worker, pod, plan, { observed, id: plan.sandbox.id, attempt }, ports, signal);
  }
  if (plan.sandbox.replaced !== undefined) {
    const message = "Pod sandbox changed, it will be killed and re-created.";
    ports.recordEvent(pod, { type: "Normal", reason: "SandboxChanged", message });
  }
  worker.waiting.clear();
  // In a new sandbox initialisation begins anew; old records of it would be taken for proof.
  await removeInitRecords(pod, observed, ports, signal);
  const starting = [...plan.startInit, ...plan.startRegular];
  worker.sandboxPace.begin(ports.clock.monotonic());
  const id = await ports.starter.createSandbox(pod, plan.sandbox.attempt, starting, signal);
  worker.sandboxPace.made();
  const seen = await ports.observer.inspect(worker.uid, signal);
  worker.stale = true;
  return startAll(worker, pod, plan, { observed: seen, id, attempt: plan.sandbox.attempt }, ports, signal);
}

async function killAll(
  worker: PodWorker,
  pod: IdentifiedPod,
  { sandbox }: PodPlan,
  observed: ObservedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<void> {
  const deadline = ports.clock.monotonic() + ownGraceSeconds(pod) * 1000;
  const why = sandbox.type === "create" ? "its pod needs another sandbox" : "no container of its pod is to go on";
  await ports.killer.killPod({ pod, observed, deadline, why, preStopDone: worker.preStopDone }, signal);
}

async function killSome(
  worker: PodWorker,
  pod: IdentifiedPod,
  plan: PodPlan,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<void> {
  // All at once: each takes its own grace.
  await mapAtMost(plan.kills.length, plan.kills, ({ container, message, because }) => {
    const spec = containerNamed(pod, container.name)?.container;
    const graceSeconds = containerGraceSeconds(pod, spec, because);
    return ports.killer.killContainer(
      { pod, container, graceSeconds, message, preStopDone: worker.preStopDone },
      signal,
    );
  });
}

/**
 * Removes every record of the pod, so that all of it starts anew in its sandbox. As with any container that ends again
 * and again, the one that asked for it keeps them waiting longer each time.
 */
async function restartAll(
  worker: PodWorker,
  pod: IdentifiedPod,
  trigger: ObservedContainer,
  observed: ObservedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<readonly ApplyFailure[]> {
  const entry = containersOf(pod).find(({ container }) => container.name === trigger.name);
  if (entry === undefined) return [];
  try {
    respectBackoff(worker, pod, entry, observed, ports);
  } catch (error) {
    return [holdBack(worker, trigger.name, error, ports)];
  }
  worker.waiting.clear();
  const ephemeral = new Set((pod.spec.ephemeralContainers ?? []).map(({ name }) => name));
  const isInit = new Set((pod.spec.initContainers ?? []).map(({ name }) => name));
  const records = observed.containers.filter(({ name }) => !ephemeral.has(name));
  // Until the last record is gone, an agent that starts now must find what asked for all this.
  const triggers = records.filter(({ name }) => name === trigger.name);
  const others = records.filter(({ name }) => name !== trigger.name);
  const inTurn = [
    others.filter(({ name }) => !isInit.has(name)),
    others.filter(({ name }) => isInit.has(name)),
    triggers,
  ];
  for (const group of inTurn) {
    await mapAtMost(aFewAtOnce, group, (container) => {
      // Whoever collects logs, or asks why all of it restarted, has not read the last of them yet.
      const isNewest = container === newestOf(observed, container.name);
      return ports.starter.removeContainer(container, signal, isNewest ? "keep" : "remove");
    });
  }
  return [];
}

async function removeInitRecords(
  pod: IdentifiedPod,
  observed: ObservedPod,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<void> {
  const names = new Set((pod.spec.initContainers ?? []).map(({ name }) => name));
  const records = observed.containers.filter(({ name }) => names.has(name));
  await mapAtMost(aFewAtOnce, records, (container) => ports.starter.removeContainer(container, signal));
}

interface Sandbox {
  readonly observed: ObservedPod;
  readonly id: SandboxId;
  readonly attempt: number;
}

async function startAll(
  worker: PodWorker,
  pod: IdentifiedPod,
  plan: PodPlan,
  sandbox: Sandbox,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<readonly ApplyFailure[]> {
  const specsOf = (names: readonly string[]): readonly PodContainer[] =>
    names.flatMap((name) => containerNamed(pod, name) ?? []);
  const failures: ApplyFailure[] = [];
  const start = async (entry: PodContainer): Promise<boolean> => {
    const failure = await startOne(worker, pod, entry, sandbox, ports, signal);
    if (failure === undefined) return true;
    failures.push(failure);
    return false;
  };
  if (startsAnything(plan)) await ports.resize.followPod(pod);
  const failure = await resize(worker, pod, plan, ports, signal);
  if (failure !== undefined) failures.push(failure);
  for (const entry of specsOf(plan.startEphemeral)) await start(entry);
  for (const entry of specsOf(plan.startInit)) {
    // A sidecar that can't start now is tried again later; a plain init container holds everything up.
    if (!(await start(entry)) && !isSidecar(entry.container)) return failures;
  }
  await startTogether(specsOf(plan.startRegular), start);
  return failures;
}

async function resize(
  worker: PodWorker,
  pod: IdentifiedPod,
  plan: PodPlan,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<ApplyFailure | undefined> {
  if (!resizesAnything(plan.resize)) return undefined;
  const beganAt = ports.clock.monotonic();
  const measured = (isDone: boolean): void => ports.metrics?.resized(isDone, ports.clock.monotonic() - beganAt);
  worker.isResizing = true;
  try {
    await resizePod(pod, plan.resize, ports.resize, signal);
    measured(true);
    worker.resizeError = undefined;
    // What the runtime said of them before is true no more, and nothing announces it.
    ports.observer.doubt(worker.uid);
    return undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    measured(false);
    ports.observer.doubt(worker.uid);
    return resizeFailed(worker, pod, error, ports);
  } finally {
    worker.isResizing = false;
  }
}

function resizeFailed(worker: PodWorker, pod: IdentifiedPod, error: unknown, ports: WorkerPorts): ApplyFailure {
  const message = cutText(messageOf(error), longestMessageBytes);
  const { generation } = pod.metadata;
  if (worker.resizeError?.message !== message || worker.resizeError.generation !== generation) {
    ports.recordEvent(pod, resizeEvent("ResizeError", pod, { generation, error: message }));
  }
  worker.resizeError = { message, generation };
  return { reason: "ResizeError", message, nextTryAt: ports.clock.now() + errorBackoffMs(++worker.failures) };
}

/** Containers start side by side, but none before an earlier one's postStart hook is through: some rely on it. */
async function startTogether(
  entries: readonly PodContainer[],
  start: (entry: PodContainer) => Promise<boolean>,
): Promise<void> {
  let group: PodContainer[] = [];
  for (const entry of entries) {
    group.push(entry);
    if (entry.container.lifecycle?.postStart === undefined) continue;
    await mapAtMost(aFewAtOnce, group, start);
    group = [];
  }
  await mapAtMost(aFewAtOnce, group, start);
}

async function startOne(
  worker: PodWorker,
  pod: IdentifiedPod,
  { kind, container }: PodContainer,
  sandbox: Sandbox,
  ports: WorkerPorts,
  signal: AbortSignal,
): Promise<ApplyFailure | undefined> {
  const held = worker.waiting.get(container.name);
  const holdsMs = held === undefined ? 0 : held.until - ports.clock.monotonic();
  if (held !== undefined && holdsMs > 0) return { ...held, nextTryAt: ports.clock.now() + holdsMs };
  try {
    respectBackoff(worker, pod, { kind, container }, sandbox.observed, ports);
    const { observed, id: sandboxId, attempt: sandboxAttempt } = sandbox;
    const toldRestarts = toldRestartsOf(worker, container.name, ports);
    const request = { pod, kind, container, observed, sandboxId, sandboxAttempt, toldRestarts };
    await ports.starter.startContainer(request, signal);
    worker.crashBackoff.started(container);
    worker.waiting.delete(container.name);
    worker.replaced.delete(container.name);
    worker.startFailures.delete(container.name);
    worker.stale = true;
    return undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    // Most often the reason is another one; to ask again costs little once per try.
    if (!(error instanceof StartError && error.reason === "CrashLoopBackOff")) ports.observer.doubt(worker.uid);
    return holdBack(worker, container.name, error, ports);
  }
}

/** Notes why a container does not start, and until when. */
function holdBack(worker: PodWorker, name: string, error: unknown, { clock }: WorkerPorts): ApplyFailure {
  const { reason, message, nextTryAt } = asFailure(error);
  // One that its postStart hook ended did run: as with any that ended, the crash back-off says when it may again.
  const holdMs = reason === "PostStartHookError" ? 0 : errorBackoffMs(noteFailure(worker, name));
  const now = clock.now();
  const tryAt = nextTryAt ?? now + holdMs;
  worker.waiting.set(name, { reason, message, until: clock.monotonic() + tryAt - now });
  return { reason, message, nextTryAt: tryAt };
}

function toldRestartsOf({ uid }: PodWorker, name: string, { statuses }: WorkerPorts): number {
  const { containerStatuses = [], initContainerStatuses = [] } = statuses.get(uid) ?? {};
  const told = named(initContainerStatuses, name) ?? named(containerStatuses, name);
  return told?.restartCount ?? 0;
}

function respectBackoff(
  worker: PodWorker,
  pod: IdentifiedPod,
  { kind, container }: PodContainer,
  observed: ObservedPod,
  ports: WorkerPorts,
): void {
  const ended = newestEnded(observed.containers, container.name);
  if (ended === undefined) return;
  const now = ports.clock.now();
  const wait = worker.crashBackoff.waitFor(container, ended, now);
  if (wait === undefined) {
    worker.crashBackoff.advance(container, ended, now);
    return;
  }
  const pods = describePod(pod);
  ports.recordEvent(pod, {
    type: "Warning",
    reason: "BackOff",
    message: `Back-off restarting failed container ${container.name} in pod ${pods}`,
    fieldPath: fieldPathOf(kind, container.name),
  });
  const message = backoffMessage(pods, container.name, formatDuration(wait.delayMs));
  throw new StartError("CrashLoopBackOff", message, { nextTryAt: wait.until });
}

function noteFailure(worker: PodWorker, container: string): number {
  const count = (worker.startFailures.get(container) ?? 0) + 1;
  worker.startFailures.set(container, count);
  return count;
}

function asFailure(error: unknown): WaitingReason & { readonly nextTryAt: number | undefined } {
  const message = cutText(messageOf(error), longestMessageBytes);
  if (error instanceof StartError) return { reason: error.reason, message, nextTryAt: error.nextTryAt };
  return { reason: "RunContainerError", message, nextTryAt: undefined };
}

/** The containers of a plan that would start, whatever kind. */
export function startsAnything(plan: PodPlan): boolean {
  return plan.startEphemeral.length + plan.startInit.length + plan.startRegular.length > 0;
}
