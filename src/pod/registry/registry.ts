import { type Clock, type Logger, messageOf } from "../../ground/base/index.ts";
import {
  graceSecondsOf,
  type IdentifiedPod,
  isMirrorPod,
  isTerminalPhase,
  type PodChange,
  type PodLedger,
  type PodStatus,
  type PodUid,
  type Provisional,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import type { Allocations } from "../resources/index.ts";
import type { PodWorkers } from "../workers/index.ts";
import { type Admission, type AdmissionVerdict, type Judged, type Preemption, verdictOr } from "./admission.ts";
import { type PendingResizePorts, PendingResizes, type ResizeTrigger } from "./pending-resizes.ts";
import type { ResizeSettings } from "./resize-decision.ts";
import type { Arrival, WantedPods } from "./wanted-pods.ts";

/**
 * The pods that are wanted on this node. Takes the sources' changes in order, decides about each pod and tells the
 * workers. What runs already is taken as it is: nobody is stopped because the agent was started again. What goes wrong
 * with one pod ends as that pod's status and is tried again; it never reaches another pod.
 */
export class PodRegistry {
  readonly #ports: RegistryPorts;
  readonly #pods: Map<PodUid, IdentifiedPod>;
  /** Handed to their workers, or about to be when others have made room. */
  readonly #taken = new Set<PodUid>();
  readonly #rejected: Set<PodUid>;
  /** Wanted, and waiting for what the decision about them rests on. */
  readonly #pending: Map<PodUid, Arrival>;
  /** Taken off to make room for others. */
  readonly #preempted = new Set<PodUid>();
  /** Admitted, or resized, and waiting for those that have to go first; each time it comes is another wait. */
  readonly #waiting = new Map<PodUid, symbol>();
  /** Run, and can't be reckoned with: what they ask for makes no sense. */
  readonly #beyondReckoning = new Set<PodUid>();
  /** The runtime has them and no worker does: left by an earlier run of the agent, or by another one. By full name. */
  readonly #found: Map<PodUid, string | undefined>;
  /** What could not be done for pods, and is owed to them. */
  readonly #failures = new Map<PodUid, Failure>();
  readonly #resizes: PendingResizes;

  constructor(ports: RegistryPorts) {
    this.#ports = ports;
    const { pods, pending, found, rejected } = ports.wanted;
    this.#pods = pods;
    this.#pending = pending;
    this.#rejected = rejected;
    this.#found = found;
    const { allocations, clock, log, workers, resizeMetrics } = ports;
    this.#resizes = new PendingResizes(ports.resizeSettings, {
      ...resizeMetrics,
      clock,
      log,
      allocations,
      waiting: ports.wanted.resizes,
      accepted: ports.wanted.acceptedResizes,
      recordEvent: ports.recordEvent,
      arePodsKnown: ports.arePodsKnown,
      pod: (uid) => (this.#taken.has(uid) && !this.#isGoing(uid) ? this.#pods.get(uid) : undefined),
      admit: (pod) => ports.admission.admit(pod, this.#active()),
      makeRoom: (pod, preemption) => this.#makeRoom(pod, preemption),
      carryOut: (pod) => this.#start(pod),
      changed: (uid) => workers.wake(uid),
    });
  }

  get(uid: PodUid): IdentifiedPod | undefined {
    return this.#pods.get(uid);
  }

  all(): IterableIterator<IdentifiedPod> {
    return this.#pods.values();
  }

  apply({ op, pods, provisional }: PodChange): void {
    for (const pod of op === "ADD" ? this.#eldestFirst(pods) : pods) {
      if (!isMirrorPod(pod)) this.#guarded(op, pod, arrivalOf(pod, provisional));
    }
  }

  /** Something that decisions rest on has become known: what runs, the Node, or what the runtime can do. */
  reconsider(): void {
    const waiting = [...this.#pending.keys()].flatMap((uid) => this.#pods.get(uid) ?? []);
    for (const pod of this.#eldestFirst(waiting)) this.#guarded("ADD", pod, this.#pending.get(uidOf(pod)) ?? said);
  }

  #guarded(op: PodOperation, pod: IdentifiedPod, arrival: Arrival): void {
    const uid = uidOf(pod);
    const owed = this.#failures.get(uid);
    // A pod that could not be taken is decided about with whatever comes of it next: a mere status asks for nothing, and
    // a new version would go to its worker unasked.
    const due = owed?.op === "ADD" && op !== "REMOVE" ? owed : { op, arrival };
    try {
      this.#handle(due.op, pod, due.arrival);
      this.#failures.delete(uid);
    } catch (error) {
      this.#failed(due, pod, error);
    }
  }

  #handle(op: PodOperation, pod: IdentifiedPod, arrival: Arrival): void {
    const uid = uidOf(pod);
    const asked = askedBy(op, pod);
    if (asked === "removal") {
      this.#remove(pod);
      return;
    }
    this.#pods.set(uid, pod);
    // Refused is refused for good, however often its source names it.
    if (this.#rejected.has(uid)) {
      if (isEnding(pod)) this.#start(pod);
    } else if (asked === "decision") this.#decide(pod, arrival);
    else if (this.#pending.has(uid)) this.#decide(pod, this.#pending.get(uid) ?? said);
    else if (asked === "sync") {
      if (this.#taken.has(uid)) this.#considerResize(pod, "pod_updated");
      this.#start(pod);
    }
    // Only now: the worker may have found a status that an earlier run of the agent left.
    this.#ports.announce(pod);
  }

  /** A defect of ours, or a pod so odd that a part could not cope: this pod waits, everybody else goes on. */
  #failed({ op, arrival }: Pick<Failure, "op" | "arrival">, pod: IdentifiedPod, error: unknown): void {
    const uid = uidOf(pod);
    const { log, ledger, clock } = this.#ports;
    const failure: Failure = { op, arrival, tries: (this.#failures.get(uid)?.tries ?? 0) + 1 };
    this.#failures.set(uid, failure);
    const waitMs = Math.min(firstRetryMs * 2 ** (failure.tries - 1), longestRetryMs);
    const { name, namespace } = pod.metadata;
    log.error("Could not handle a change of a pod; it is tried again", error, { pod: name, namespace, op });
    const message = `handling its ${op} failed: ${messageOf(error)}`;
    ledger.block(uid, { reason: "UnexpectedError", message, nextTryAt: clock.now() + waitMs });
    clock.after(waitMs, () => {
      // Whatever came meanwhile has had its own try.
      if (this.#failures.get(uid) !== failure) return;
      const newest = this.#pods.get(uid);
      if (op === "REMOVE" || newest !== undefined) this.#guarded(op, newest ?? pod, arrival);
    });
  }

  /** A newcomer must not take the place of what has been here since before the agent was restarted. */
  #eldestFirst(pods: readonly IdentifiedPod[]): Iterable<IdentifiedPod> {
    if (pods.length < 2) return pods;
    const running = pods.filter((pod) => this.#found.has(uidOf(pod)));
    return new Set([...running, ...pods.filter((pod) => this.#ports.wasHere(uidOf(pod))), ...pods]);
  }

  /** A pod has stopped, or has gone: others may have what it held. */
  roomMade(): void {
    this.#resizes.reconsider("pods_removed");
  }

  /** Every source has spoken, and what runs was taken over: now it can be told who has room to grow. */
  podsKnown(): void {
    this.#resizes.reconsider("pods_added");
  }

  /** What can't be reckoned with is not resized; it must be run and stopped all the same. */
  #considerResize(pod: IdentifiedPod, trigger: ResizeTrigger): void {
    if (isEnding(pod)) {
      this.#resizes.forget(uidOf(pod));
      return;
    }
    try {
      if (trigger === "pods_added") {
        this.#ports.allocations.admit(pod);
        this.#ports.believeGiven(this.#asRun(pod));
      }
      if (this.#isGoing(uidOf(pod))) this.#resizes.forget(uidOf(pod));
      else if (this.#resizes.consider(pod, trigger)) this.#resizes.reconsider("pod_resized");
    } catch (error) {
      const { name, namespace } = pod.metadata;
      this.#ports.log.warn("Cannot reckon with the resources of a pod; it is not resized", {
        pod: name,
        namespace,
        err: messageOf(error),
      });
    }
  }

  /** The pod with what it was promised; as it is where that can't be told. */
  #asRun(pod: IdentifiedPod): IdentifiedPod {
    try {
      return this.#ports.allocations.asRun(pod);
    } catch {
      return pod;
    }
  }

  /** A sandbox or container of this pod appeared, changed or went. */
  runtimeChanged(uid: PodUid, name?: string): void {
    if (this.#ports.workers.knows(uid)) this.#ports.workers.runtimeChanged(uid);
    else if (!this.#taken.has(uid)) this.#found.set(uid, name ?? this.#found.get(uid));
  }

  #decide(pod: IdentifiedPod, arrival: Arrival): void {
    const course = this.#courseOf(pod, arrival);
    switch (course.type) {
      case "wait":
        this.#wait(uidOf(pod), course.waitsFor, arrival);
        break;
      case "take":
        this.#take(pod);
        break;
      case "take over":
        this.#takeOver(pod);
        break;
      case "ask":
        this.#follow(pod, this.#verdict(pod), arrival);
    }
  }

  /** Whether admission has a say, and what is done if not. */
  #courseOf(pod: IdentifiedPod, { hold }: Arrival): Course {
    const uid = uidOf(pod);
    const over = isTerminalPhase(pod.status?.phase);
    if (hold !== undefined) return { type: "wait", waitsFor: hold };
    if (isEnding(pod) || over || this.#taken.has(uid)) return { type: "take" };
    if (!this.#ports.isRuntimeKnown())
      return { type: "wait", waitsFor: "the container runtime to say what runs already" };
    return this.#found.has(uid) ? { type: "take over" } : { type: "ask" };
  }

  /**
   * What would be decided about the pod if its source named it now, in place of the one that is replaced. Nothing is
   * kept of it, as long as `admission` is on trial.
   */
  foresee(pod: IdentifiedPod, replaced: PodUid | undefined, admission: Admission): ForeseenDecision {
    const others = this.#active().filter((other) => uidOf(other) !== replaced);
    if (this.#rejected.has(uidOf(pod))) return { type: "refused before", others };
    const course = this.#courseOf(pod, said);
    if (course.type !== "ask") return { ...course, others };
    return { type: "judged", ...admission.judge(this.#asRun(pod), others), others };
  }

  #follow(pod: IdentifiedPod, verdict: AdmissionVerdict, arrival: Arrival): void {
    switch (verdict.type) {
      case "undecided":
        this.#wait(uidOf(pod), verdict.waitsFor, arrival);
        break;
      case "rejected":
        // The API server may have taken the pod away, or those that are in its way: a list from disk refuses nobody,
        if (arrival.isProvisional) this.#wait(uidOf(pod), `the API server; for now, ${verdict.message}`, arrival);
        else this.#reject(pod, verdict);
        break;
      case "admitted":
        // and stops nobody.
        if (arrival.isProvisional && verdict.preempts !== undefined) {
          const { resource } = verdict.preempts;
          this.#wait(uidOf(pod), `the API server; for now, others would have to stop to free ${resource}`, arrival);
          break;
        }
        if (verdict.preempts !== undefined) this.#makeRoom(pod, verdict.preempts);
        this.#take(pod);
    }
  }

  #verdict(pod: IdentifiedPod): AdmissionVerdict {
    const { admission, allocations, log } = this.#ports;
    return verdictOr(
      () => admission.admit(allocations.asRun(pod), this.#active()),
      (error) => {
        const { name, namespace } = pod.metadata;
        log.error("Admission of a pod failed unexpectedly; the pod is rejected", error, { pod: name, namespace });
      },
    );
  }

  #reject(pod: IdentifiedPod, { reason, message }: Extract<AdmissionVerdict, { type: "rejected" }>): void {
    const uid = uidOf(pod);
    this.#pending.delete(uid);
    this.#rejected.add(uid);
    this.#ports.ledger.block(uid, undefined);
    this.#ports.ledger.note(uid, "admitted", `rejected: ${reason}: ${message}`);
    this.#ports.recordEvent(pod, { type: "Warning", reason, message });
    this.#ports.setStatus(pod, { phase: "Failed", reason, message: `Pod was rejected: ${message}` });
  }

  #wait(uid: PodUid, waitsFor: string, arrival: Arrival): void {
    this.#pending.set(uid, arrival);
    this.#ports.ledger.block(uid, { reason: "NotDecidedYet", message: `waiting for ${waitsFor}` });
  }

  /** Its containers are here, so a node took it: it stays, whatever admission would say of a newcomer. */
  #takeOver(pod: IdentifiedPod): void {
    try {
      this.#ports.admission.admit(pod, []);
    } catch (error) {
      const { name, namespace } = pod.metadata;
      this.#ports.log.error(
        "Cannot compute what a running pod uses; others are admitted as if it were not there",
        error,
        {
          pod: name,
          namespace,
        },
      );
      this.#beyondReckoning.add(uidOf(pod));
    }
    this.#ports.keepPlace(this.#asRun(pod));
    this.#take(pod);
  }

  #take(pod: IdentifiedPod): void {
    const uid = uidOf(pod);
    this.#pending.delete(uid);
    this.#rejected.delete(uid);
    this.#taken.add(uid);
    this.#considerResize(pod, "pods_added");
    this.#start(pod);
  }

  #start(pod: IdentifiedPod): void {
    // One that is to end needs no room.
    if (this.#waiting.has(uidOf(pod)) && !isEnding(pod)) return;
    this.#ports.workers.upsert(this.#asRun(pod));
    this.#found.delete(uidOf(pod));
  }

  /** Those that hold what they were promised; others give it back or never had it. */
  #active(): readonly IdentifiedPod[] {
    return [...this.#taken].flatMap((uid) => {
      const step = this.#ports.workers.stateOf(uid)?.step;
      const isGone = step === "terminated" || step === "finished" || this.#preempted.has(uid);
      const pod = this.#pods.get(uid);
      return pod === undefined || isGone || this.#beyondReckoning.has(uid) ? [] : [this.#asRun(pod)];
    });
  }

  /** The node takes it off, or it has ended: it gets nothing more, and nobody has to go for it. */
  #isGoing(uid: PodUid): boolean {
    const step = this.#ports.workers.stateOf(uid)?.step;
    return this.#preempted.has(uid) || (step !== undefined && step !== "running");
  }

  /** What the pod has asked for, to start or to grow, waits until they are gone. */
  #makeRoom(pod: IdentifiedPod, preemption: Preemption): void {
    const uid = uidOf(pod);
    const wait = Symbol(uid);
    this.#waiting.set(uid, wait);
    for (const victim of preemption.victims) this.#preempted.add(uidOf(victim));
    this.#ports.preempt(preemption, () => {
      if (this.#waiting.get(uid) !== wait) return;
      this.#waiting.delete(uid);
      const newest = this.#pods.get(uid);
      if (newest !== undefined) this.#guarded("UPDATE", newest, said);
    });
  }

  #remove(pod: IdentifiedPod): void {
    const uid = uidOf(pod);
    this.#pods.delete(uid);
    this.#preempted.delete(uid);
    this.#beyondReckoning.delete(uid);
    this.#failures.delete(uid);
    this.#resizes.forget(uid);
    for (const uids of [this.#pending, this.#rejected, this.#waiting, this.#taken]) uids.delete(uid);
    // A worker forgets its pod when that has gone.
    if (!this.#ports.workers.knows(uid)) this.#ports.forget(uid);
    const graceSeconds = graceSecondsOf(pod);
    // Its own source has said that it is not wanted any more; no other can want this very pod.
    this.#ports.workers.terminate(uid, { cause: "deleted", graceSeconds });
  }
}

const said: Arrival = { isProvisional: false, hold: undefined };

function arrivalOf(pod: IdentifiedPod, provisional: Provisional | undefined): Arrival {
  return provisional === undefined ? said : { isProvisional: true, hold: provisional.hold(uidOf(pod)) };
}

type Course =
  | { readonly type: "wait"; readonly waitsFor: string }
  | { readonly type: "take" | "take over" }
  /** Admission decides. */
  | { readonly type: "ask" };

/** What would be decided about a pod beside others that hold what they were promised. */
export type ForeseenDecision = { readonly others: readonly IdentifiedPod[] } & (
  | Exclude<Course, { type: "ask" }>
  /** And for good: this very pod is in its source. */
  | { readonly type: "refused before" }
  | ({ readonly type: "judged" } & Judged)
);

type PodOperation = PodChange["op"];

interface Failure {
  readonly op: PodOperation;
  readonly arrival: Arrival;
  readonly tries: number;
}

/** What a change asks for. No default: the compiler names each operation that is forgotten here. */
function askedBy(op: PodOperation, { spec }: IdentifiedPod): "decision" | "sync" | "nothing" | "removal" {
  switch (op) {
    case "ADD":
      return "decision";
    case "UPDATE":
    case "DELETE":
      return "sync";
    case "RECONCILE":
      // Somebody may have opened or closed a readiness gate, or made a claim; else a status is nothing to act upon.
      return [...(spec.readinessGates ?? []), ...(spec.resourceClaims ?? [])].length === 0 ? "nothing" : "sync";
    case "REMOVE":
      return "removal";
  }
}

function isEnding({ metadata }: IdentifiedPod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** A defect must not become a busy loop; the next change of the pod is tried at once anyway. */
const firstRetryMs = 1_000;
const longestRetryMs = 60_000;

export interface RegistryPorts {
  /** Where the registry keeps what it knows. */
  readonly wanted: WantedPods;
  readonly workers: Pick<PodWorkers, "upsert" | "terminate" | "runtimeChanged" | "knows" | "stateOf" | "wake">;
  readonly admission: Admission;
  readonly allocations: Allocations;
  /** The pod is taken as it is here: where nobody has noted what it was given as a whole, this is it. */
  readonly believeGiven: (pod: IdentifiedPod) => void;
  readonly resizeSettings: ResizeSettings;
  readonly resizeMetrics?: Pick<PendingResizePorts, "onRequested" | "onAccepted" | "onInfeasible">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly ledger: PodLedger;
  readonly recordEvent: RecordPodEvent;
  /** The runtime has said what it has; call `reconsider` when this becomes true. */
  readonly isRuntimeKnown: () => boolean;
  /** Every source has spoken, and no pod that runs here waits to be taken over; call `podsKnown` when it becomes true. */
  readonly arePodsKnown: () => boolean;
  /** An earlier run of the agent has admitted the pod. */
  readonly wasHere: (uid: PodUid) => boolean;
  /** Takes pods off the node; `then` is called once they have stopped, or take too long about it. */
  readonly preempt: (preemption: Preemption, then: () => void) => void;
  /** The pod runs here already: it keeps what it has alone. Never throws. */
  readonly keepPlace: (pod: IdentifiedPod) => void;
  readonly setStatus: (pod: IdentifiedPod, status: PodStatus) => void;
  /** Nothing of the pod ever ran, and it is not wanted any more. */
  readonly forget: (uid: PodUid) => void;
  /** The pod is wanted, in this version; for those who show pods. */
  readonly announce: (pod: IdentifiedPod) => void;
}
