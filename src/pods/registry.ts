import { isAbort, type Ledger, type Logger } from "../base/index.ts";
import {
  type IdentifiedPod,
  isMirrorPod,
  type ObservedPod,
  type PodStatus,
  type PodUid,
  type RecordPodEvent,
  uidOf,
} from "../model/index.ts";
import type { PodWorkers } from "../workers/index.ts";
import type { Admission, Preemption } from "./admission.ts";

const defaultGraceSeconds = 30;

/** The pods that are wanted on this node. Takes the sources' changes in order and tells the workers. */
export class PodRegistry {
  readonly #ports: RegistryPorts;
  readonly #pods = new Map<PodUid, IdentifiedPod>();
  readonly #rejected = new Set<PodUid>();
  /** Taken off to make room for others. */
  readonly #preempted = new Set<PodUid>();
  /** Admitted, and waiting for those that have to go first. */
  readonly #waiting = new Set<PodUid>();
  /** Removed, or found in the runtime, before all sources had spoken: nobody may be stopped yet. With full names. */
  readonly #undecided = new Map<PodUid, string | undefined>();

  constructor(ports: RegistryPorts) {
    this.#ports = ports;
  }

  get(uid: PodUid): IdentifiedPod | undefined {
    return this.#pods.get(uid);
  }

  all(): IterableIterator<IdentifiedPod> {
    return this.#pods.values();
  }

  apply(change: { readonly op: string; readonly pods: readonly IdentifiedPod[] }): void {
    for (const pod of change.op === "ADD" ? this.#knownFirst(change.pods) : change.pods) {
      if (isMirrorPod(pod)) continue;
      switch (change.op) {
        case "ADD":
          this.#add(pod);
          break;
        case "UPDATE":
        case "DELETE":
          this.#pods.set(uidOf(pod), pod);
          if (!this.#rejected.has(uidOf(pod)) || change.op === "DELETE") this.#start(pod);
          break;
        case "RECONCILE":
          this.#pods.set(uidOf(pod), pod);
          // Somebody may have opened or closed a readiness gate.
          if ((pod.spec.readinessGates ?? []).length > 0) this.#start(pod);
          break;
        case "REMOVE":
          this.#remove(pod);
          continue;
      }
      // Only now: the worker may have found a status that an earlier run of the agent left.
      this.#ports.announce(pod);
    }
  }

  /** A newcomer must not take the place of what has been here since before the agent was restarted. */
  #knownFirst(pods: readonly IdentifiedPod[]): Iterable<IdentifiedPod> {
    return pods.length < 2 ? pods : new Set([...pods.filter((pod) => this.#ports.wasHere(uidOf(pod))), ...pods]);
  }

  /** A sandbox or container of this pod appeared, changed or went. */
  runtimeChanged(uid: PodUid, name?: string): void {
    if (this.#ports.workers.knows(uid)) this.#ports.workers.runtimeChanged(uid);
    else if (!this.#isTaken(uid)) this.#undecided.set(uid, name ?? this.#undecided.get(uid));
  }

  /** Wanted, and not refused. */
  #isTaken(uid: PodUid): boolean {
    return this.#pods.has(uid) && !this.#rejected.has(uid);
  }

  /** Whether a pod of this full name was found in the runtime and nobody has claimed it or begun to stop it yet. */
  isUnclaimed(name: string): boolean {
    return [...this.#undecided.values()].includes(name);
  }

  /** Decides about pods that nobody claimed; call when the sources are ready and whenever one turns up later. */
  async settleUndecided(signal: AbortSignal): Promise<void> {
    if (!this.#ports.allSourcesReady()) return;
    await Promise.all([...this.#undecided.keys()].map((uid) => this.#settle(uid, signal)));
  }

  async #settle(uid: PodUid, signal: AbortSignal): Promise<void> {
    try {
      await this.#decide(uid, signal);
      this.#undecided.delete(uid);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const { log } = this.#ports;
      log.warn("Could not inspect a pod that no source wants; trying again later", { uid, err: error });
    }
  }

  async #decide(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { workers, log } = this.#ports;
    if (this.#isTaken(uid)) return;
    if (workers.knows(uid)) {
      workers.terminate(uid, { cause: "deleted", graceSeconds: defaultGraceSeconds });
      return;
    }
    const observed = await this.#ports.inspect(uid, signal);
    if (this.#isTaken(uid) || observed.sandboxes.length + observed.containers.length === 0) return;
    const { name: pod, namespace } = observed;
    log.info("Stopping a pod that the runtime has but no source wants", { pod, namespace, uid });
    workers.adoptOrphan(uid, { fullName: `${pod}_${namespace}`, graceSeconds: orphanGrace(observed) });
  }

  #add(pod: IdentifiedPod): void {
    const uid = uidOf(pod);
    this.#pods.set(uid, pod);
    this.#undecided.delete(uid);
    const ending = pod.metadata.deletionTimestamp !== undefined;
    const over = pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed";
    const verdict = ending || over ? { type: "admitted" as const } : this.#ports.admission.admit(pod, this.#active());
    if (verdict.type === "rejected") {
      this.#rejected.add(uid);
      this.#ports.ledger.note(uid, "admitted", `rejected: ${verdict.reason}: ${verdict.message}`);
      this.#ports.recordEvent(pod, { type: "Warning", reason: verdict.reason, message: verdict.message });
      this.#ports.setStatus(pod, {
        phase: "Failed",
        reason: verdict.reason,
        message: `Pod was rejected: ${verdict.message}`,
      });
      return;
    }
    this.#rejected.delete(uid);
    if ("preempts" in verdict && verdict.preempts !== undefined) this.#makeRoom(pod, verdict.preempts);
    this.#start(pod);
  }

  #start(pod: IdentifiedPod): void {
    if (!this.#waiting.has(uidOf(pod))) this.#ports.workers.upsert(pod);
  }

  /** Those that hold what they were promised; others give it back or never had it. */
  #active(): readonly IdentifiedPod[] {
    return [...this.#pods.values()].filter((pod) => {
      const step = this.#ports.workers.stateOf(uidOf(pod))?.step;
      const isGone = step === "terminated" || step === "finished" || this.#preempted.has(uidOf(pod));
      return !isGone && !this.#rejected.has(uidOf(pod));
    });
  }

  #makeRoom(pod: IdentifiedPod, preemption: Preemption): void {
    const uid = uidOf(pod);
    for (const victim of preemption.victims) this.#preempted.add(uidOf(victim));
    this.#waiting.add(uid);
    this.#ports.preempt(preemption, () => {
      this.#waiting.delete(uid);
      const newest = this.#pods.get(uid);
      if (newest !== undefined) this.#ports.workers.upsert(newest);
    });
  }

  #remove(pod: IdentifiedPod): void {
    const uid = uidOf(pod);
    this.#pods.delete(uid);
    this.#preempted.delete(uid);
    if (this.#rejected.delete(uid)) this.#ports.forget(uid);
    if (!this.#ports.allSourcesReady()) {
      this.#undecided.set(uid, undefined);
      return;
    }
    const graceSeconds =
      pod.metadata.deletionGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? defaultGraceSeconds;
    this.#ports.workers.terminate(uid, { cause: "deleted", graceSeconds });
  }
}

export interface RegistryPorts {
  readonly workers: PodWorkers;
  readonly admission: Admission;
  readonly log: Logger;
  readonly ledger: Ledger<PodUid>;
  readonly recordEvent: RecordPodEvent;
  readonly allSourcesReady: () => boolean;
  /** An earlier run of the agent has admitted the pod. */
  readonly wasHere: (uid: PodUid) => boolean;
  /** Takes pods off the node; `then` is called once they have stopped, or take too long about it. */
  readonly preempt: (preemption: Preemption, then: () => void) => void;
  readonly inspect: (uid: PodUid, signal: AbortSignal) => Promise<ObservedPod>;
  readonly setStatus: (pod: IdentifiedPod, status: PodStatus) => void;
  /** Nothing of the pod ever ran, and it is not wanted any more. */
  readonly forget: (uid: PodUid) => void;
  /** The pod is wanted, in this version; for those who show pods. */
  readonly announce: (pod: IdentifiedPod) => void;
}

/** The grace its containers were created with: whoever removed the manifest while we were away meant it kindly. */
function orphanGrace(observed: ObservedPod): number {
  const graces = observed.containers.flatMap(({ annotations }) => annotations.terminationGraceSeconds ?? []);
  return graces.length === 0 ? 1 : Math.max(...graces);
}
