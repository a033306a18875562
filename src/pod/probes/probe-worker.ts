import { type Clock, messageOf, type Timer } from "../../ground/base/index.ts";
import {
  type Container,
  type ContainerId,
  type ContainerKind,
  type IdentifiedPod,
  mayRestart,
  uidOf,
} from "../../ground/model/index.ts";
import { type ProbeAttempt, ProbeHistory } from "./history.ts";
import type { ProbeOutcome } from "./outcome.ts";
import type { ProbeResult } from "./ports.ts";
import { decides, initialResult, isFinal, lengthen, nextDue, type ProbePlan, type Streak } from "./probe-spec.ts";
import type { RunProbe } from "./run-probe.ts";
import { needsPodIp, type ProbedInstance, type ProbeTarget, targetOf } from "./target.ts";

/** What a worker is about; fixed when the pod is first seen. */
export interface ProbeSubject {
  readonly pod: IdentifiedPod;
  readonly container: Container;
  readonly containerKind: ContainerKind;
  readonly plan: ProbePlan;
}

export interface SeenContainer {
  readonly id: ContainerId;
  readonly state: "created" | "running" | "exited" | "unknown";
  /** Milliseconds since 1970; 0 when not known. */
  readonly startedAt: number;
  readonly exitCode: number;
}

/** What a worker needs of the collection it belongs to. */
export interface ProbeWorkerPorts {
  readonly clock: Clock;
  readonly run: RunProbe;
  spawn(name: string, task: () => Promise<void>): void;
  /** Whether the container's startup probe, if any, has succeeded. */
  hasStarted(worker: ProbeWorker): boolean;
  /** The result saved for this instance before the agent restarted. */
  savedResult(worker: ProbeWorker, id: ContainerId): ProbeResult | undefined;
  /** Extra wait before the first attempt, so that not all probes begin at once. */
  spreadMs(worker: ProbeWorker, seen: SeenContainer, restored: boolean): number;
  finished(worker: ProbeWorker, attempt: FinishedAttempt): void;
  /** The result is another than `before` now, because of an attempt. */
  decided(worker: ProbeWorker, before: ProbeResult): void;
}

export interface FinishedAttempt {
  readonly outcome: ProbeOutcome;
  readonly durationMs: number;
  /** How much later than planned it began. */
  readonly lateMs: number;
  /** The first of this instance of the container. */
  readonly isFirst: boolean;
}

/** Attempts that fail for reasons of our own are repeated at once, this often in all. */
const tries = 3;

/**
 * One probe of one container.
 *
 *   absent -> watching -> held        held: the result stands until the container has a new id
 *                 |         |
 *                 v         v
 *                down / ended         not running; ended: will not run again, as if it had no probe
 *
 * Every step is left for `watching` when a new instance runs, except stopped, which is for good.
 */
type State =
  | { readonly step: "absent" | "stopped" }
  | { readonly step: "watching" | "held" | "down" | "ended"; readonly seen: SeenContainer };

/** What comes next: nothing by itself, an attempt that is planned, or the one under way. */
type Next =
  | { readonly type: "nothing" }
  | { readonly type: "planned"; readonly timer: Timer }
  | { readonly type: "attempt"; readonly cancel: AbortController };

const nothing: Next = { type: "nothing" };

export class ProbeWorker {
  readonly subject: ProbeSubject;
  readonly #ports: ProbeWorkerPorts;
  #state: State = { step: "absent" };
  #result: ProbeResult;
  #streak: Streak | undefined;
  #podIp: string | undefined;
  /** When the next attempt is due, by the monotonic clock; undefined until the first of this instance is planned. */
  #due: number | undefined;
  #spreadMs = 0;
  #hasAnswered = false;
  readonly #history = new ProbeHistory();
  #next: Next = nothing;
  #resolved: { readonly at: ProbedInstance; readonly target: ProbeTarget } | undefined;

  constructor(subject: ProbeSubject, ports: ProbeWorkerPorts) {
    this.subject = subject;
    this.#ports = ports;
    this.#result = initialResult(subject.plan.kind);
  }

  /** undefined once the probe has ended: the container then counts as one without it. */
  get result(): ProbeResult | undefined {
    return this.#state.step === "stopped" || this.#state.step === "ended" ? undefined : this.#result;
  }

  /** The instance that the result is about. */
  get id(): ContainerId | undefined {
    return "seen" in this.#state ? this.#state.seen.id : undefined;
  }

  /** Its last attempts, the latest last. */
  get attempts(): readonly ProbeAttempt[] {
    return this.#history.attempts();
  }

  /** When the next attempt is due, in milliseconds since 1970; undefined: none is planned. */
  get nextAt(): number | undefined {
    if (this.#next.type !== "planned" || this.#due === undefined) return undefined;
    const { clock } = this.#ports;
    return clock.now() + this.#due - clock.monotonic();
  }

  /** Takes in what the runtime says of the container now. */
  observe(seen: SeenContainer | undefined, podIp: string | undefined): void {
    if (this.#state.step === "stopped") return;
    this.#podIp = podIp;
    switch (seen?.state) {
      case undefined:
      case "created":
        this.#rest();
        break;
      case "running":
        this.#observeRunning(seen);
        break;
      case "exited":
      case "unknown":
        this.#observeDown(seen);
    }
  }

  /** Plans the next attempt if one may be made now and none is planned. */
  schedule(): void {
    if (this.#next.type !== "nothing" || !this.#mayProbe()) return;
    const { clock } = this.#ports;
    const now = clock.monotonic();
    this.#due ??= now + Math.max(this.#initialDelayLeftMs(), this.#spreadMs);
    const due = this.#due;
    const timer = clock.after(Math.ceil(due - now), () => {
      this.#next = nothing;
      this.#begin(due);
    });
    this.#next = { type: "planned", timer };
  }

  /** Probes at once instead of at the next tick, if that could still bring good news. */
  probeNow(): void {
    if (this.#next.type === "attempt" || this.#result === "success") return;
    if (!this.#mayProbe() || this.#initialDelayLeftMs() > 0) return;
    this.#rest();
    this.#due = this.#ports.clock.monotonic();
    this.#begin(this.#due);
  }

  stop(): void {
    this.#rest();
    this.#state = { step: "stopped" };
  }

  #observeRunning(seen: SeenContainer): void {
    const { step } = this.#state;
    const known = this.id === seen.id && (step === "watching" || step === "held");
    if (!known) this.#adopt(seen);
    this.schedule();
  }

  #adopt(seen: SeenContainer): void {
    const { kind } = this.subject.plan;
    this.#rest();
    const saved = this.#ports.savedResult(this, seen.id);
    this.#result = saved ?? initialResult(kind);
    this.#streak = undefined;
    this.#due = undefined;
    this.#hasAnswered = false;
    this.#spreadMs = this.#ports.spreadMs(this, seen, saved !== undefined);
    this.#state = { step: isFinal(kind, this.#result) ? "held" : "watching", seen };
  }

  #observeDown(seen: SeenContainer): void {
    this.#rest();
    const { pod, container, containerKind } = this.subject;
    const isOver = seen.state === "exited" && containerKind !== "sidecar" && !mayRestart(pod, container);
    this.#state = { step: isOver ? "ended" : "down", seen };
    this.#result = "failure";
  }

  #mayProbe(): boolean {
    if (this.#state.step !== "watching") return false;
    if (this.#podIp === undefined && needsPodIp(this.subject.plan.probe)) return false;
    return this.subject.plan.kind === "startup" || this.#ports.hasStarted(this);
  }

  #initialDelayLeftMs(): number {
    const { initialDelayMs } = this.subject.plan;
    const startedAt = this.#state.step === "watching" ? this.#state.seen.startedAt : 0;
    // A start in the future means that the machine's time was set back: never wait longer than asked for.
    return Math.min(Math.max(startedAt + initialDelayMs - this.#ports.clock.now(), 0), initialDelayMs);
  }

  #rest(): void {
    const before = this.#next;
    this.#next = nothing;
    switch (before.type) {
      case "nothing":
        break;
      case "planned":
        before.timer.cancel();
        break;
      case "attempt":
        before.cancel.abort(new DOMException("probe no longer wanted", "AbortError"));
    }
  }

  #begin(due: number): void {
    if (this.#state.step !== "watching") return;
    const { id } = this.#state.seen;
    const attempt: Next = { type: "attempt", cancel: new AbortController() };
    const { signal } = attempt.cancel;
    this.#next = attempt;
    const { clock, spawn } = this.#ports;
    const startedAt = clock.monotonic();
    spawn("probe", async () => {
      let outcome: ProbeOutcome;
      try {
        outcome = await this.#tryUntilAnswered(id, signal);
      } catch (error) {
        if (signal.aborted) return;
        throw error;
      }
      if (this.#next !== attempt) return;
      this.#next = nothing;
      this.#settle(outcome, clock.monotonic() - startedAt, startedAt - due);
    });
  }

  async #tryUntilAnswered(id: ContainerId, signal: AbortSignal): Promise<ProbeOutcome> {
    const { plan } = this.subject;
    let outcome: ProbeOutcome;
    let left = tries;
    do {
      try {
        outcome = await this.#ports.run(this.#target(id), plan.timeoutMs, signal);
      } catch (error) {
        signal.throwIfAborted();
        // One probe that cannot be carried out must not take the others with it.
        outcome = { type: "error", state: "unknown", message: messageOf(error) };
      }
    } while (outcome.type === "error" && --left > 0);
    return outcome;
  }

  /** Commands and paths may be long: they are worked out once for each instance of the container. */
  #target(id: ContainerId): ProbeTarget {
    const { pod, container, plan } = this.subject;
    const podIp = this.#podIp ?? "";
    if (this.#resolved?.at.id !== id || this.#resolved.at.podIp !== podIp) {
      const at = { pod: uidOf(pod), id, podIp };
      this.#resolved = { at, target: targetOf(plan.probe, container, at) };
    }
    return this.#resolved.target;
  }

  #settle(outcome: ProbeOutcome, durationMs: number, lateMs: number): void {
    const { plan } = this.subject;
    const { clock } = this.#ports;
    const isFirst = !this.#hasAnswered;
    this.#hasAnswered = true;
    this.#history.add(clock.now(), outcome.type);
    this.#ports.finished(this, { outcome, durationMs, lateMs, isFirst });
    this.#due = nextDue(this.#due ?? clock.monotonic(), plan.periodMs, clock.monotonic());
    if (outcome.type !== "error") this.#count(outcome.type === "failure" ? "failure" : "success");
    this.schedule();
  }

  #count(finding: Streak["finding"]): void {
    const { plan } = this.subject;
    this.#streak = lengthen(this.#streak, finding);
    if (!decides(this.#streak, plan) || this.#state.step !== "watching") return;
    const before = this.#result;
    this.#result = finding;
    if (isFinal(plan.kind, finding)) {
      this.#streak = undefined;
      this.#state = { step: "held", seen: this.#state.seen };
    }
    if (before !== finding) this.#ports.decided(this, before);
  }
}
