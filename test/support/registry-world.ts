import { Ledger, silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import type { IdentifiedPod, ObservedPod, PodChange, PodStep, PodUid } from "../../src/ground/model/index.ts";
import { Admission, type AdmissionVerdict, type Preemption } from "../../src/pod/registry/admission.ts";
import { arePodsKnown } from "../../src/pod/registry/intake.ts";
import { OrphanedPods } from "../../src/pod/registry/orphaned-pods.ts";
import { PodRegistry } from "../../src/pod/registry/registry.ts";
import { WantedPods } from "../../src/pod/registry/wanted-pods.ts";
import { Allocations } from "../../src/pod/resources/index.ts";
import type { PodState, TerminateRequest } from "../../src/pod/workers/index.ts";
import { FakeClock } from "./fake-clock.ts";
import { testPod } from "./pods.ts";
import { noResizeLimits } from "./test-engine.ts";

export type Meta = Partial<IdentifiedPod["metadata"]>;
export const pod = (name: string, metadata: Meta = {}): IdentifiedPod => testPod({}, { name, uid: name, ...metadata });
export const uid = (name: string): PodUid => name as PodUid;
export const deleting = { deletionTimestamp: "2026-01-01T00:00:00Z" };
export const never = new AbortController().signal;
export const rejected: AdmissionVerdict = { type: "rejected", reason: "OutOfcpu", message: "no cpu left" };

/** Takes pods as workers do, without working on them. */
export class Workers {
  readonly pods = new Map<PodUid, { pod: IdentifiedPod | undefined; step: PodState["step"] }>();
  readonly terminated: string[] = [];
  readonly orphans: string[] = [];
  readonly looked: string[] = [];
  /** Pods that can't be handled now. */
  readonly broken = new Set<string>();

  upsert(of: IdentifiedPod): void {
    this.#mayFail(of.metadata.uid);
    this.pods.set(uid(of.metadata.uid), {
      pod: of,
      step: of.metadata.deletionTimestamp === undefined ? "running" : "terminating",
    });
  }
  terminate(of: PodUid, { cause, graceSeconds }: TerminateRequest): void {
    this.#mayFail(of);
    if (this.pods.has(of)) this.terminated.push(`${of} ${cause} ${graceSeconds}`);
  }
  adoptOrphan(of: PodUid, { fullName: name, graceSeconds }: { fullName: string; graceSeconds: number }): void {
    this.pods.set(of, { pod: undefined, step: "terminating" });
    this.orphans.push(`${name} ${graceSeconds}`);
  }
  runtimeChanged(of: PodUid): void {
    this.looked.push(of);
  }
  wake(): void {}
  knows(of: PodUid): boolean {
    return this.pods.has(of);
  }
  stateOf(of: PodUid): PodState | undefined {
    const step = this.pods.get(of)?.step;
    if (step === undefined) return undefined;
    return step === "running"
      ? { step, isPrepared: true, stoppedRemains: undefined, deadlineTimer: undefined }
      : { step: "finished", cause: "completed", returning: undefined, isCleared: false };
  }
  #mayFail(of: string): void {
    if (this.broken.has(of)) throw new Error("no way");
  }
}

export class World {
  readonly clock = new FakeClock();
  readonly workers = new Workers();
  readonly ledger = new Ledger<PodUid, PodStep>(this.clock);
  readonly events: string[] = [];
  readonly statuses: string[] = [];
  readonly announced: string[] = [];
  readonly forgotten: string[] = [];
  readonly wereHere = new Set<string>();
  /** Pods in the order in which admission was asked about them, with those that count beside them. */
  readonly judged: string[] = [];
  readonly kept: string[] = [];
  readonly preemptions: { readonly preemption: Preemption; readonly then: () => void }[] = [];
  isRuntimeKnown = true;
  lookFails = false;
  mayStop = true;
  verdict: (of: IdentifiedPod) => AdmissionVerdict = () => ({ type: "admitted" });
  inspect: (of: PodUid) => ObservedPod = () => {
    throw new Error("the runtime does not answer");
  };
  readonly wanted = new WantedPods();
  readonly registry = new PodRegistry({
    wanted: this.wanted,
    workers: this.workers,
    allocations: new Allocations("/nowhere/allocated_pods_state", { asPromise: () => undefined }, silentLogger),
    believeGiven: () => {},
    resizeSettings: noResizeLimits,
    admission: new Admission({
      own: (of, others) => {
        this.judged.push([of, ...others].map(({ metadata }) => metadata.uid).join(" beside "));
        return this.verdict(of);
      },
    }),
    clock: this.clock,
    log: silentLogger,
    ledger: this.ledger,
    recordEvent: (of, event) => this.events.push(`${of.metadata.uid} ${event.type} ${event.reason} ${event.message}`),
    isRuntimeKnown: () => {
      if (this.lookFails) throw new Error("no way");
      return this.isRuntimeKnown;
    },
    arePodsKnown: () => true,
    wasHere: (of) => this.wereHere.has(of),
    keepPlace: (of) => this.kept.push(of.metadata.uid),
    preempt: (preemption, then) => this.preemptions.push({ preemption, then }),
    setStatus: (of, { phase, reason, message }) =>
      this.statuses.push(`${of.metadata.uid} ${phase} ${reason} ${message}`),
    forget: (of) => this.forgotten.push(of),
    announce: (of) => this.announced.push(of.metadata.uid),
  });

  readonly orphans = new OrphanedPods(new TaskScope(), {
    wanted: this.wanted,
    workers: this.workers,
    inspect: async (of) => this.inspect(of),
    mayStop: () => this.mayStop,
    log: silentLogger,
  });

  arePodsKnown(): boolean {
    return arePodsKnown({ allReady: () => true }, this.wanted, this.isRuntimeKnown);
  }

  apply(op: PodChange["op"], ...pods: readonly IdentifiedPod[]): void {
    this.registry.apply({ op, source: "api", pods });
  }

  /** As a list from disk: `holds` says what pods have to wait for. */
  assume(pods: readonly IdentifiedPod[], holds: Readonly<Record<string, string>> = {}): void {
    this.registry.apply({ op: "ADD", source: "api", pods, provisional: { hold: (of) => holds[of] } });
  }

  worked(name: string): IdentifiedPod | undefined {
    return this.workers.pods.get(uid(name))?.pod;
  }

  /** The names of pods that workers have. */
  get taken(): readonly string[] {
    return [...this.workers.pods.keys()];
  }

  /** What the pod waits for. */
  block(name: string): string | undefined {
    const block = this.ledger.read(uid(name))?.blocker;
    return block && `${block.reason}: ${block.message}`;
  }
}
