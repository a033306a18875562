import type { Clock, Logger, Timer } from "../../ground/base/index.ts";
import {
  type IdentifiedPod,
  isTerminalPhase,
  type PodUid,
  qosClassOf,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import type { Allocations } from "../resources/index.ts";
import { type PendingResize, resizeEvent } from "../status/index.ts";
import type { AdmissionVerdict, Preemption } from "./admission.ts";
import {
  asksForLess,
  asksForNoMore,
  decideResize,
  type InfeasibleDetail,
  type ResizeSettings,
} from "./resize-decision.ts";
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
  /** Those that came before all pods were known: a place that looks free may be somebody's. */
  readonly #undecided = new Set<PodUid>();
  #retry: { readonly timer: Timer; readonly at: number } | undefined;

  constructor(settings: ResizeSettings, ports: PendingResizePorts) {
    this.#settings = settings;
    this.#pending = ports.waiting;
    this.#ports = ports;
  }

  /** The pod came, or its spec may have changed. True: it gives something back that others may wait for. */
  consider(pod: IdentifiedPod, trigger: ResizeTrigger): boolean {
    const isNews = this.#pending.get(uidOf(pod))?.generation !== pod.metadata.generation;
    if (trigger === "pod_updated" && isNews) this.#ports.onRequested?.(this.#ports.allocations.asRun(pod), pod);
    if (trigger === "pods_added") this.#recall(pod);
    if (!this.#ports.arePodsKnown()) {
      this.#undecided.add(uidOf(pod));
      return false;
    }
    const running = this.#ports.allocations.asRun(pod);
    const givesBack = this.#decide(pod, trigger) && asksForLess(running, pod);
    this.#keepTrying();
    return givesBack;
  }

  /** There may be room now. Whoever is accepted is told by `carryOut`. */
  reconsider(trigger: ResizeTrigger): void {
    if (this.#ports.arePodsKnown()) {
      // What one gives back another may wait for that had its turn before.
      while (this.#decideInTurn(trigger)) {}
    }
    this.#keepTrying();
  }

  /** True: somebody who was accepted gives something back. */
  #decideInTurn(trigger: ResizeTrigger): boolean {
    const giving = this.#inTurn().filter((pod) =>
      this.#apart(pod, () => {
        const running = this.#ports.allocations.asRun(pod);
        if (!this.#decide(pod, trigger)) return false;
        this.#ports.carryOut(pod);
        return asksForLess(running, pod);
      }),
    );
    return giving.length > 0;
  }

  /** What can't be reckoned with is not resized, and is in nobody's way. */
  #apart<Result>(pod: IdentifiedPod, act: () => Result): Result | undefined {
    try {
      return act();
    } catch (error) {
      this.#undecided.delete(uidOf(pod));
      const { name, namespace } = pod.metadata;
      const { log } = this.#ports;
      log.warn("Cannot reckon with the resources of a pod; it is not resized", { pod: name, namespace, err: error });
      return undefined;
    }
  }

  forget(uid: PodUid): void {
    this.#pending.delete(uid);
    this.#undecided.delete(uid);
    this.#ports.accepted.delete(uid);
    this.#keepTrying();
  }

  /** What an earlier run of the agent, or another one, has told of the pod: it has waited since then, and users know. */
  #recall(pod: IdentifiedPod): void {
    const told = pod.status?.conditions?.find(({ type }) => type === "PodResizePending");
    const { reason, message = "", observedGeneration: generation, lastTransitionTime = "" } = told ?? {};
    const uid = uidOf(pod);
    if (this.#pending.has(uid) || (reason !== "Deferred" && reason !== "Infeasible")) return;
    const { clock } = this.#ports;
    const waitedMs = clock.now() - Date.parse(lastTransitionTime);
    const since = clock.monotonic() - (Number.isFinite(waitedMs) ? Math.max(waitedMs, 0) : 0);
    this.#pending.set(uid, { reason, message, generation, nextTryAt: undefined, since });
  }

  #decide(pod: IdentifiedPod, trigger: ResizeTrigger): boolean {
    const uid = uidOf(pod);
    const { allocations, clock } = this.#ports;
    const before = this.#pending.get(uid);
    this.#undecided.delete(uid);
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
        this.#ports.accepted.set(uid, pod.metadata.generation);
        this.#ports.recordEvent(pod, resizeEvent("ResizeStarted", pod, { generation: pod.metadata.generation }));
        if (verdict.preempts !== undefined) this.#ports.makeRoom(pod, verdict.preempts);
        if (before?.reason === "Deferred") this.#ports.onAccepted?.(trigger);
        return true;
      case "infeasible":
        this.#ports.onInfeasible?.(verdict.detail);
        this.#wait(pod, before, { reason: "Infeasible", message: verdict.message, nextTryAt: undefined });
        return false;
      case "deferred": {
        // All that wait are tried again together.
        const nextTryAt = this.#retry?.at ?? clock.now() + retryMs;
        this.#wait(pod, before, { reason: "Deferred", message: verdict.message, nextTryAt });
        return false;
      }
    }
  }

  #wait(pod: IdentifiedPod, before: WaitingResize | undefined, pending: Omit<PendingResize, "generation">): void {
    const uid = uidOf(pod);
    const since = before?.reason === pending.reason ? before.since : this.#ports.clock.monotonic();
    const { generation } = pod.metadata;
    this.#pending.set(uid, { ...pending, generation, since });
    if (before?.reason !== pending.reason || before.generation !== generation) {
      const { reason, message: error } = pending;
      this.#ports.recordEvent(pod, resizeEvent(`Resize${reason}`, pod, { generation, error }));
    } else if (before.message === pending.message) {
      if (before.nextTryAt !== pending.nextTryAt) this.#ports.changed(uid);
      return;
    }
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
    const waiting = [...this.#pending].filter(([, { reason }]) => reason === "Deferred").map(([uid]) => uid);
    const ranked = [...new Set([...waiting, ...this.#undecided])].flatMap((uid) => {
      const wanted = this.#ports.pod(uid);
      if (wanted === undefined) return [];
      const rank = this.#apart(wanted, () => this.#rankOf(wanted));
      return rank === undefined ? [] : [{ wanted, rank }];
    });
    return ranked.sort((a, b) => compareRanks(a.rank, b.rank)).map(({ wanted }) => wanted);
  }

  #rankOf(wanted: IdentifiedPod): readonly number[] {
    return [
      asksForNoMore(this.#ports.allocations.asRun(wanted), wanted) ? 0 : 1,
      -(wanted.spec.priority ?? 0),
      qosClassOf(wanted) === "Guaranteed" ? 0 : 1,
      this.#pending.get(uidOf(wanted))?.since ?? Number.POSITIVE_INFINITY,
    ];
  }

  #keepTrying(): void {
    const isWaiting = [...this.#pending.values()].some(({ reason }) => reason === "Deferred");
    if (!isWaiting) {
      this.#retry?.timer.cancel();
      this.#retry = undefined;
      return;
    }
    const { clock } = this.#ports;
    const timer = (): Timer =>
      clock.after(retryMs, () => {
        this.#retry = undefined;
        this.reconsider("periodic_retry");
      });
    this.#retry ??= { timer: timer(), at: clock.now() + retryMs };
  }
}

function compareRanks(a: readonly number[], b: readonly number[]): number {
  for (const [index, rank] of a.entries()) {
    const other = b[index] ?? 0;
    if (rank !== other) return rank < other ? -1 : 1;
  }
  return 0;
}

export interface PendingResizePorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Where they are kept; others read there. */
  readonly waiting: Map<PodUid, WaitingResize>;
  /** Accepted, and nobody has said yet that they are done; by the version of the spec that was accepted. */
  readonly accepted: Map<PodUid, number | undefined>;
  readonly recordEvent: RecordPodEvent;
  readonly allocations: Pick<Allocations, "asRun" | "resize">;
  /** Whether all pods that hold something are known: every source has spoken, and what runs was taken over. */
  readonly arePodsKnown: () => boolean;
  /** As it is wanted now. */
  readonly pod: (uid: PodUid) => IdentifiedPod | undefined;
  /** Whether the node would take the pod as it is given, beside the others. */
  readonly admit: (pod: IdentifiedPod) => AdmissionVerdict;
  /** Others go for it: it is carried out when they are gone. */
  readonly makeRoom: (pod: IdentifiedPod, preemption: Preemption) => void;
  /** A resize that waited may be carried out. */
  readonly carryOut: (pod: IdentifiedPod) => void;
  /** What is said of a resize that waits has changed. */
  readonly changed: (uid: PodUid) => void;
  /** For metrics: one is asked for; one that was deferred is accepted; one can't be carried out. */
  readonly onRequested?: (running: IdentifiedPod, wanted: IdentifiedPod) => void;
  readonly onAccepted?: (trigger: ResizeTrigger) => void;
  readonly onInfeasible?: (detail: InfeasibleDetail) => void;
}
