import type { Clock, Logger, Timer } from "../../ground/base/index.ts";
import { type IdentifiedPod, isTerminalPhase, type PodUid, qosClassOf, uidOf } from "../../ground/model/index.ts";
import type { Allocations } from "../resources/index.ts";
import type { PendingResize } from "../status/index.ts";
import type { AdmissionVerdict, Preemption } from "./admission.ts";
import { asksForNoMore, decideResize, type InfeasibleDetail, type ResizeSettings } from "./resize-decision.ts";
import type { WaitingResize } from "./wanted-pods.ts";

/** What made the node think again about resizes that wait. */
export type ResizeTrigger = "pod_updated" | "pods_added" | "pods_removed" | "pod_resized" | "periodic_retry";

/** What has waited this long is tried again although nothing seems to have changed. */
const retryMs = 3 * 60_000;

/**
 * Pods whose spec asks for other resources than they were promised. Each is decided about when its spec changes; what
 * can't be had now waits, and is decided about anew whenever somebody has left, shrunk or come, in a fixed order.
 */
export class PendingResizes {
  readonly #ports: PendingResizePorts;
  readonly #settings: ResizeSettings;
  readonly #pending: Map<PodUid, WaitingResize>;
  #retry: Timer | undefined;

  constructor(settings: ResizeSettings, ports: PendingResizePorts) {
    this.#settings = settings;
    this.#pending = ports.waiting;
    this.#ports = ports;
  }

  /** The pod came, or its spec may have changed. True: it may have what it asks for now. */
  consider(pod: IdentifiedPod, trigger: ResizeTrigger): boolean {
    if (trigger === "pod_updated") this.#ports.onRequested?.(this.#ports.allocations.asRun(pod), pod);
    const isAccepted = this.#decide(pod, trigger);
    this.#keepTrying();
    return isAccepted;
  }

  /** There may be room now. Whoever is accepted is told by `accepted`. */
  reconsider(trigger: ResizeTrigger): void {
    for (const pod of this.#inTurn()) {
      if (this.#decide(pod, trigger)) this.#ports.accepted(pod);
    }
    this.#keepTrying();
  }

  forget(uid: PodUid): void {
    this.#pending.delete(uid);
    this.#keepTrying();
  }

  #decide(pod: IdentifiedPod, trigger: ResizeTrigger): boolean {
    const uid = uidOf(pod);
    const { allocations, clock } = this.#ports;
    const before = this.#pending.get(uid);
    const running = allocations.asRun(pod);
    const isOver = pod.metadata.deletionTimestamp !== undefined || isTerminalPhase(pod.status?.phase);
    const verdict = isOver
      ? ({ type: "none" } as const)
      : decideResize({ running, wanted: pod }, this.#settings, (wanted) => this.#ports.admit(wanted));
    switch (verdict.type) {
      case "none":
        this.#pending.delete(uid);
        return false;
      case "accepted":
        this.#pending.delete(uid);
        allocations.resize(pod);
        if (verdict.preempts !== undefined) this.#ports.preempt(verdict.preempts);
        if (before?.reason === "Deferred") this.#ports.onAccepted?.(trigger);
        return true;
      case "infeasible":
        this.#ports.onInfeasible?.(verdict.detail);
        this.#wait(pod, before, { reason: "Infeasible", message: verdict.message, nextTryAt: undefined });
        return false;
      case "deferred":
        this.#wait(pod, before, { reason: "Deferred", message: verdict.message, nextTryAt: clock.now() + retryMs });
        return false;
    }
  }

  #wait(pod: IdentifiedPod, before: WaitingResize | undefined, pending: Omit<PendingResize, "generation">): void {
    const uid = uidOf(pod);
    const since = before?.reason === pending.reason ? before.since : this.#ports.clock.monotonic();
    this.#pending.set(uid, { ...pending, generation: pod.metadata.generation, since });
    if (before?.message === pending.message && before.reason === pending.reason) return;
    this.#ports.log.info("A pod can't have the resources it asks for now", {
      pod: pod.metadata.name,
      namespace: pod.metadata.namespace,
      reason: pending.reason,
      why: pending.message,
    });
    this.#ports.changed(uid);
  }

  /** Who asks for no more goes first, then by priority, class, and how long they have waited. */
  #inTurn(): readonly IdentifiedPod[] {
    const { allocations, pod } = this.#ports;
    const waiting = [...this.#pending].flatMap(([uid, { reason, since }]) => {
      const wanted = reason === "Deferred" ? pod(uid) : undefined;
      if (wanted === undefined) return [];
      const rank = [
        asksForNoMore(allocations.asRun(wanted), wanted) ? 0 : 1,
        -(wanted.spec.priority ?? 0),
        qosClassOf(wanted) === "Guaranteed" ? 0 : 1,
        since,
      ];
      return [{ wanted, rank }];
    });
    return waiting.sort((a, b) => compareRanks(a.rank, b.rank)).map(({ wanted }) => wanted);
  }

  #keepTrying(): void {
    const isWaiting = [...this.#pending.values()].some(({ reason }) => reason === "Deferred");
    if (!isWaiting) {
      this.#retry?.cancel();
      this.#retry = undefined;
      return;
    }
    this.#retry ??= this.#ports.clock.after(retryMs, () => {
      this.#retry = undefined;
      this.reconsider("periodic_retry");
    });
  }
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, rank] of a.entries()) {
    const difference = rank - (b[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

export interface PendingResizePorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Where they are kept; others read there. */
  readonly waiting: Map<PodUid, WaitingResize>;
  readonly allocations: Pick<Allocations, "asRun" | "resize">;
  /** As it is wanted now. */
  readonly pod: (uid: PodUid) => IdentifiedPod | undefined;
  /** Whether the node would take the pod as it is given, beside the others. */
  readonly admit: (pod: IdentifiedPod) => AdmissionVerdict;
  readonly preempt: (preemption: Preemption) => void;
  /** A resize that waited may be carried out. */
  readonly accepted: (pod: IdentifiedPod) => void;
  /** What is said of a resize that waits has changed. */
  readonly changed: (uid: PodUid) => void;
  /** For metrics: one is asked for; one that was deferred is accepted; one can't be carried out. */
  readonly onRequested?: (running: IdentifiedPod, wanted: IdentifiedPod) => void;
  readonly onAccepted?: (trigger: ResizeTrigger) => void;
  readonly onInfeasible?: (detail: InfeasibleDetail) => void;
}
