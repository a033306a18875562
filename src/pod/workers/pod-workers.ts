import { setMaxListeners } from "node:events";
import {
  KeyedWorkers,
  LinkedSignal,
  messageOf,
  noTracer,
  onAbort,
  type SpanStart,
  type TaskScope,
  waitFor,
} from "../../ground/base/index.ts";
import {
  fullName,
  graceSecondsOf,
  type IdentifiedPod,
  isStaticPod,
  jsonEqual,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";
import { ClaimError } from "../resources/index.ts";
import type { PendingResize } from "../status/index.ts";
import { VolumeError } from "../volumes/index.ts";
import { errorBackoffMs } from "./error-backoff.ts";
import type { EndingState, Finished, PodState, TerminateRequest } from "./pod-state.ts";
import {
  cancelTimers,
  move,
  newOrphanWorker,
  newPodWorker,
  type PodWorker,
  type SyncOutcome,
  type Worker,
} from "./pod-worker.ts";
import type { SyncOperation, WorkerPorts } from "./ports.ts";
import { StartSlots } from "./start-slots.ts";
import { syncTerminated, syncTerminating } from "./sync-ending.ts";
import { type RunningTools, syncRunning } from "./sync-running.ts";
import type { WorkerTable } from "./worker-table.ts";

/**
 * One serial worker per pod. Callers say what is wanted and that something may have changed; the worker reads the
 * present truth each time it runs, so a doubled call is harmless and no pod waits for another.
 */
export class PodWorkers {
  readonly #ports: WorkerPorts;
  readonly #workers: WorkerTable;
  readonly #keyed: KeyedWorkers<PodUid>;
  readonly #slots: StartSlots;
  /** Nobody waits for what is left of a pod to be cleared away; those that have yet to stop come first. */
  readonly #clearing: StartSlots;
  readonly #goneListeners = new Set<(uid: PodUid) => void>();
  readonly #finishedListeners = new Set<(uid: PodUid) => void>();

  constructor(scope: TaskScope, ports: WorkerPorts) {
    this.#ports = ports;
    this.#workers = ports.table;
    this.#slots = ports.churn.slots;
    this.#clearing = new StartSlots(ports.clock, clearingAtOnce);
    this.#keyed = new KeyedWorkers(scope, (uid, signal) => this.#sync(uid, signal));
    onAbort(scope.signal, () => {
      for (const worker of this.#workers.values()) cancelTimers(worker);
    });
  }

  /** The pod is wanted, in this version. */
  upsert(pod: IdentifiedPod): void {
    const uid = uidOf(pod);
    const worker = this.#workers.get(uid);
    if (worker === undefined) this.#add(newPodWorker(uid, pod, this.#ports));
    else if (worker.type === "orphan" || isUnwanted(worker.state)) move(worker, { type: "returned", pod });
    else {
      // What could not be started may be possible in this version. An echo of our own status is none: clearing for it
      // would change the status, which would be echoed again.
      if (!jsonEqual(worker.pod.spec, pod.spec)) {
        worker.waiting.clear();
        worker.sandboxPace.startOver();
      }
      worker.pod = pod;
    }
    this.#begin(pod);
  }

  #add(worker: PodWorker): void {
    const { uid, pod } = worker;
    this.#workers.set(uid, worker);
    const source = pod.metadata.annotations?.["kubernetes.io/config.source"] ?? "api";
    this.#ports.ledger.note(uid, "seen", `from ${source}`);
  }

  #begin(pod: IdentifiedPod): void {
    const uid = uidOf(pod);
    if (pod.metadata.deletionTimestamp !== undefined) {
      this.terminate(uid, { cause: "deleted", graceSeconds: graceSecondsOf(pod) });
    }
    this.#keyed.wake(uid);
  }

  /** The pod's containers must stop. Later calls may shorten the grace. */
  terminate(uid: PodUid, request: TerminateRequest): void {
    const worker = this.#workers.get(uid);
    if (worker === undefined) return;
    const before = worker.state;
    move(worker, { type: "terminate", now: this.#ports.clock.monotonic(), ...request });
    if (before.step === "running" || isShorter(before, worker.state)) worker.interrupt?.abort(interrupted);
    this.#keyed.wake(uid);
  }

  /** Ends the pod and resolves when none of its containers runs any more. */
  async terminateAndWait(uid: PodUid, request: TerminateRequest, signal: AbortSignal): Promise<void> {
    const worker = this.#workers.get(uid);
    if (worker === undefined || hasStopped(worker.state)) return;
    this.terminate(uid, request);
    await waitFor(signal, (whenStopped) => {
      move(worker, { type: "awaited", whenStopped });
      // Who no longer waits is told all the same, and does not listen.
      return () => {};
    });
  }

  /** The runtime has a pod that no source knows: stop it, with the grace it was created with. */
  adoptOrphan(uid: PodUid, orphan: { readonly fullName: string; readonly graceSeconds: number }): void {
    if (this.#workers.has(uid)) return;
    this.#workers.set(uid, newOrphanWorker(uid, orphan, this.#ports));
    this.#ports.metrics?.orphaned();
    this.#keyed.wake(uid);
  }

  /** What the runtime has of this pod may have changed. */
  runtimeChanged(uid: PodUid): void {
    const worker = this.#workers.get(uid);
    if (worker === undefined) return;
    worker.stale = true;
    this.#keyed.wake(uid);
  }

  /** What kept containers from being made is out of the way: those are tried at once, and not when they are next due. */
  startNow(uid: PodUid): void {
    const { waiting } = this.#workers.get(uid) ?? {};
    for (const [name, held] of waiting ?? []) {
      if (held.reason === "CreateContainerConfigError") waiting?.set(name, { ...held, until: 0 });
    }
    this.wake(uid);
  }

  /** Something else about this pod may have changed (a probe result, a timer, the network). */
  wake(uid: PodUid): void {
    const worker = this.#workers.get(uid);
    if (worker !== undefined && worker.state.step !== "finished") this.#keyed.wake(uid);
  }

  wakeAll(): void {
    for (const uid of this.#workers.keys()) this.wake(uid);
  }

  knows(uid: PodUid): boolean {
    return this.#workers.has(uid);
  }

  uids(): Iterable<PodUid> {
    return this.#workers.keys();
  }

  stateOf(uid: PodUid): PodState | undefined {
    return this.#workers.stateOf(uid);
  }

  pods(): readonly IdentifiedPod[] {
    return this.#workers.pods();
  }

  /** Whether a static pod of this full name, other than the one given, has not left the node yet. */
  isLeaving(name: string, except: PodUid | undefined): boolean {
    return [...this.#workers.values()].some((worker) => {
      if (worker.uid === except) return false;
      return nameOf(worker) === name && (worker.type === "orphan" || isStaticPod(worker.pod));
    });
  }

  /** Called when nothing is left to do for a pod that is still listed. */
  onFinished(listener: (uid: PodUid) => void): void {
    this.#finishedListeners.add(listener);
  }

  /** Called after a pod that nobody wants has left the node without a trace. */
  onGone(listener: (uid: PodUid) => void): void {
    this.#goneListeners.add(listener);
  }

  async #sync(uid: PodUid, signal: AbortSignal): Promise<void> {
    const worker = this.#workers.get(uid);
    if (worker === undefined) return;
    worker.timer?.cancel();
    using interrupt = new LinkedSignal(signal);
    // Every container that starts or stops listens; more than ten are no leak.
    setMaxListeners(0, interrupt.signal);
    worker.interrupt = interrupt;
    const operation = operationOf(worker);
    const measured = this.#measure(worker, operation);
    const { tracer = noTracer } = this.#ports;
    try {
      const outcome = await tracer.span(syncSpan(worker, operation), () => this.#step(worker, interrupt.signal));
      this.#schedule(worker, outcome);
    } catch (error) {
      if (signal.aborted) return;
      if (interrupt.signal.aborted) this.#keyed.wake(uid);
      else this.#schedule(worker, this.#failed(worker, error));
    } finally {
      // A step that was under way when the agent began to stop may have set one.
      if (signal.aborted) cancelTimers(worker);
      worker.interrupt = undefined;
      measured();
    }
  }

  /** Returns what to call when the sync has ended. */
  #measure(worker: Worker, operation: SyncOperation): () => void {
    const { metrics, clock } = this.#ports;
    if (metrics === undefined) return () => {};
    const startedAt = clock.monotonic();
    if (worker.synced === undefined) metrics.began(podOf(worker), startedAt - worker.madeAt);
    worker.synced = podOf(worker) ?? "unknown";
    return () => metrics.synced(operation, clock.monotonic() - startedAt);
  }

  async #step(worker: Worker, signal: AbortSignal): Promise<SyncOutcome> {
    if (worker.type === "orphan") return this.#stepOfEnding(worker, worker.state, signal);
    const { state } = worker;
    if (state.step !== "running") return this.#stepOfEnding(worker, state, signal);
    if (this.#mustWaitForNamesake(worker)) return { type: "idle" };
    return syncRunning({ worker, state, pod: worker.pod }, this.#ports, this.#toolsFor(worker), signal);
  }

  async #stepOfEnding(worker: Worker, state: EndingState, signal: AbortSignal): Promise<SyncOutcome> {
    switch (state.step) {
      case "terminating":
        return syncTerminating(worker, state, this.#ports, signal);
      case "terminated":
        return syncTerminated(worker, this.#ports, signal);
      case "finished":
        // The API keeps a deleted pod until we have told it how the pod ended; it need not wait for the cleaning up.
        if (!this.#isOver(worker)) for (const listener of this.#finishedListeners) listener(worker.uid);
        if (isUnwanted(state)) await this.#clear(worker, state, signal);
        if (this.#isOver(worker)) this.#leave(worker);
        this.#wakeNamesakes(worker);
        // Last, as a runtime that hangs is to hold up nothing else; one that is cleared away is forgotten as a whole.
        if (!isUnwanted(state)) await this.#noteRemains(worker, signal);
        return { type: "idle" };
    }
  }

  /** What is removed of a pod that has ended is remembered too, or every relist would find it amiss and be soon followed by another. */
  async #noteRemains(worker: Worker, signal: AbortSignal): Promise<void> {
    if (!worker.stale) return;
    worker.stale = false;
    await this.#ports.observer.inspect(worker.uid, signal);
  }

  #toolsFor(worker: PodWorker): RunningTools {
    const { clock, isNameUnclaimed } = this.#ports;
    return {
      slots: this.#slots,
      interruptAt: (at) => {
        if (worker.state.step !== "running") return;
        const timer = clock.after(at - clock.now(), () => {
          if (worker.state.step === "running") worker.interrupt?.abort(interrupted);
          this.wake(worker.uid);
        });
        move(worker, { type: "deadlineSet", timer });
      },
      isNameInUse: (pod) => {
        if (!isStaticPod(pod)) return false;
        const name = fullName(pod);
        const isStopping = [...this.#workers.values()].some(
          (other) => other.type === "orphan" && other.fullName === name && other.state.step !== "finished",
        );
        return isStopping || isNameUnclaimed(name);
      },
    };
  }

  /** Two static pods of one name never run side by side: an edited manifest starts when its old version has ended. */
  #mustWaitForNamesake(worker: PodWorker): boolean {
    if (!isStaticPod(worker.pod)) return false;
    for (const other of this.#workers.values()) {
      if (other === worker) return false;
      const isNamesake = other.type === "pod" && isStaticPod(other.pod) && nameOf(other) === nameOf(worker);
      if (isNamesake && other.state.step !== "finished") return true;
    }
    return false;
  }

  /** Nobody wants the pod, and nobody waits to hear of it. */
  #isOver({ state, uid }: Worker): boolean {
    if (state.step === "running" || !isUnwanted(state)) return false;
    return state.returning !== undefined || !this.#ports.isListed(uid);
  }

  async #clear(worker: Worker, { isCleared }: Finished, signal: AbortSignal): Promise<void> {
    if (isCleared) return;
    await this.#clearing.run(() => this.#ports.setup.removeContent(worker.uid, signal), signal);
    move(worker, { type: "cleared" });
  }

  #leave(worker: Worker): void {
    const { uid, state } = worker;
    const returning = state.step === "running" ? undefined : state.returning;
    cancelTimers(worker);
    this.#ports.statuses.delete(uid);
    this.#ports.observer.forget(uid);
    this.#ports.terminationTexts.forget(uid);
    this.#ports.ledger.forget(uid);
    this.#workers.delete(uid);
    for (const listener of this.#goneListeners) listener(uid);
    if (returning === undefined) return;
    this.#ports.metrics?.restarted(returning);
    // Nothing is left of it, its checkpoint included: there is nothing to read, and nobody to try again if that failed.
    this.#add(newPodWorker(uid, returning, this.#ports, {}));
    this.#begin(returning);
  }

  #wakeNamesakes(worker: Worker): void {
    for (const other of this.#workers.values()) {
      const isNamesake = other.uid !== worker.uid && nameOf(other) === nameOf(worker);
      if (isNamesake && other.state.step === "running") this.#keyed.wake(other.uid);
    }
  }

  #failed(worker: Worker, error: unknown): SyncOutcome {
    const message = messageOf(error);
    worker.stale = true;
    this.#ports.observer.doubt(worker.uid);
    worker.failures++;
    // Who makes the volumes tries again at its own pace and has said why; nothing is won by being earlier.
    if (error instanceof VolumeError && error.nextTryAt !== undefined) {
      const at = Math.max(error.nextTryAt, this.#ports.clock.now() + soonMs);
      return { type: "retry", at, reason: "FailedMount", message };
    }
    const at = this.#ports.clock.now() + errorBackoffMs(worker.failures);
    if (error instanceof ClaimError) return { type: "retry", at, reason: error.reason, message };
    this.#ports.log.error("Pod sync failed, will be tried again", error, {
      pod: podOf(worker)?.metadata.name ?? worker.uid,
      namespace: podOf(worker)?.metadata.namespace ?? "",
      tries: worker.failures,
    });
    return { type: "retry", at, reason: "SyncError", message };
  }

  #schedule(worker: Worker, outcome: SyncOutcome): void {
    const { ledger } = this.#ports;
    switch (outcome.type) {
      case "idle":
        worker.roundsInARow = 0;
        if (!this.#workers.has(worker.uid)) return;
        ledger.block(worker.uid, blockOf(this.#ports.resize.pending(worker.uid)));
        return;
      case "again":
        ledger.block(worker.uid, undefined);
        worker.roundsInARow++;
        // A pod that never comes to rest must not have a core of the machine for itself.
        if (worker.roundsInARow % mostRoundsInARow === 0) this.#wakeAt(worker, this.#ports.clock.now() + restlessMs);
        else this.#keyed.wake(worker.uid);
        return;
      case "retry":
        worker.roundsInARow = 0;
        ledger.block(worker.uid, { reason: outcome.reason, message: outcome.message, nextTryAt: outcome.at });
        this.#wakeAt(worker, outcome.at);
    }
  }

  #wakeAt(worker: Worker, at: number): void {
    const { clock } = this.#ports;
    worker.timer = clock.after(at - clock.now(), () => this.#keyed.wake(worker.uid));
  }
}

const clearingAtOnce = 2;

/** A pod goes on at once from container to container and from step to step; few have so many. */
const mostRoundsInARow = 100;
const restlessMs = 1_000;

/** A try that is due is under way by then. */
const soonMs = 100;

const interrupted = new DOMException("the pod is to end", "AbortError");

/** A pod that lacks nothing but a resize runs, and waits for it all the same. */
function blockOf(pending: PendingResize | undefined): Parameters<WorkerPorts["ledger"]["block"]>[1] {
  if (pending === undefined) return undefined;
  const { reason, message, nextTryAt } = pending;
  return { reason: `Resize${reason}`, message, ...(nextTryAt === undefined ? {} : { nextTryAt }) };
}

/** Named as those who know the kubelet's traces look for them. */
function syncSpan(worker: Worker, operation: SyncOperation): SpanStart {
  const { namespace = "", name = "" } = podOf(worker)?.metadata ?? {};
  const names = { kill: "syncTerminatingPod", terminated: "syncTerminatedPod" } as const;
  return {
    name: operation === "kill" || operation === "terminated" ? names[operation] : "syncPod",
    mayBegin: true,
    attributes: {
      "k8s.pod.uid": worker.uid,
      "k8s.pod": `${namespace}/${name}`,
      "k8s.pod.name": name,
      "k8s.pod.update_type": operation,
      "k8s.namespace.name": namespace,
    },
  };
}

function operationOf(worker: Worker): SyncOperation {
  switch (worker.state.step) {
    case "running":
      if (worker.synced === undefined) return "create";
      return worker.synced === podOf(worker) ? "sync" : "update";
    case "terminating":
      return "kill";
    case "terminated":
    case "finished":
      return "terminated";
  }
}

function podOf(worker: Worker): IdentifiedPod | undefined {
  return worker.type === "pod" ? worker.pod : undefined;
}

function nameOf(worker: Worker): string {
  return worker.type === "pod" ? fullName(worker.pod) : worker.fullName;
}

function isUnwanted(state: PodState): boolean {
  return state.step !== "running" && (state.cause === "deleted" || state.cause === "orphaned");
}

function hasStopped(state: PodState): boolean {
  return state.step === "terminated" || state.step === "finished";
}

function isShorter(before: PodState, after: PodState): boolean {
  return before.step === "terminating" && after.step === "terminating" && after.graceSeconds < before.graceSeconds;
}
