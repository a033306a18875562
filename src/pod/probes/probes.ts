import { type Clock, KeyedWorkers, type Logger, onAbort, type TaskScope } from "../../ground/base/index.ts";
import {
  type ContainerId,
  containersOf,
  fnv1a32,
  type IdentifiedPod,
  type PodUid,
  uidOf,
} from "../../ground/model/index.ts";
import type { ProbeAttempt } from "./history.ts";
import { type ProbeKind, type ProbeResult, type ProbeStore, probeKinds, type SavedResult } from "./ports.ts";
import { initialResult, type ProbePlan, planOf } from "./probe-spec.ts";
import { ProbeWorker, type ProbeWorkerPorts, type SeenContainer } from "./probe-worker.ts";
import { ProbeReporter, type ReporterPorts } from "./reporter.ts";
import type { RunProbe } from "./run-probe.ts";

export interface ProbesPorts extends ReporterPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Owns the attempts under way and the writing of results; all probing ends with it. */
  readonly scope: TaskScope;
  readonly run: RunProbe;
  readonly store: ProbeStore;
}

/** What the runtime says of a pod's containers: the newest instance of each name, and where the pod is reached. */
export interface ProbeObservation {
  readonly containers: ReadonlyMap<string, SeenContainer>;
  readonly podIp: string | undefined;
  /** The node's address, where pods on the host network are reached. */
  readonly hostIp: string | undefined;
}

export type ProbeListener = (uid: PodUid, container: string, kind: ProbeKind, result: ProbeResult) => void;

/** One probe as people are shown it. */
export interface ShownProbe {
  readonly container: string;
  readonly plan: ProbePlan;
  /** Undefined once the probe has ended. */
  readonly result: ProbeResult | undefined;
  readonly nextAt: number | undefined;
  readonly attempts: readonly ProbeAttempt[];
}

interface PodEntry {
  readonly pod: IdentifiedPod;
  /** In the order of `probeKinds` for each container, as a startup probe decides about the other two. */
  readonly workers: readonly ProbeWorker[];
  /** The same by container and kind: a pod may have tens of thousands, each of which is asked for. */
  readonly byProbe: ReadonlyMap<string, ProbeWorker>;
  readonly saved: Map<string, SavedResult>;
}

/** Found running when the agent starts and with no result yet: their first probes spread over this time. */
const hurriedSpreadMs = 1_000;

/**
 * Liveness, readiness and startup probes of all pods, one loop each. The pod's worker tells what it observes and reads
 * results; a result that an attempt has changed is announced to listeners. What `observe` itself changes is not: its
 * caller is the one to be told.
 */
export class Probes {
  readonly #ports: ProbesPorts;
  readonly #reporter: ProbeReporter;
  readonly #pods = new Map<PodUid, PodEntry>();
  readonly #listeners = new Set<ProbeListener>();
  readonly #saver: KeyedWorkers<PodUid>;
  /** Results to announce as soon as they are saved. */
  readonly #news = new Map<PodUid, (() => void)[]>();
  readonly #workerPorts: ProbeWorkerPorts;
  readonly #createdAt: number;
  readonly #createdAtMonotonic: number;

  constructor(ports: ProbesPorts) {
    this.#ports = ports;
    this.#reporter = new ProbeReporter(ports);
    this.#saver = new KeyedWorkers(ports.scope, (uid) => this.#save(uid));
    this.#createdAt = ports.clock.now();
    this.#createdAtMonotonic = ports.clock.monotonic();
    this.#workerPorts = {
      clock: ports.clock,
      run: ports.run,
      spawn: (name, task) => ports.scope.spawn(name, task),
      hasStarted: (worker) => this.#hasStarted(worker),
      savedResult: (worker, id) => this.#takeSaved(worker, id),
      spreadMs: (worker, seen, restored) => this.#spreadMs(worker, seen, restored),
      finished: (worker, attempt) => this.#reporter.finished(worker.subject, attempt),
      decided: (worker, before) => this.#decided(worker, before),
    };
    onAbort(ports.scope.signal, () => this.#stopAll());
  }

  /** Makes sure the pod is probed, as its spec was the first time; call it before results are asked for. */
  ensure(pod: IdentifiedPod): void {
    const uid = uidOf(pod);
    if (this.#pods.has(uid)) return;
    const isDeleted = pod.metadata.deletionTimestamp !== undefined;
    const workers: ProbeWorker[] = [];
    for (const { kind: containerKind, container } of containersOf(pod)) {
      if (containerKind !== "regular" && containerKind !== "sidecar") continue;
      for (const kind of probeKinds) {
        const probe = container[`${kind}Probe`];
        if (probe === undefined || (isDeleted && kind !== "readiness")) continue;
        workers.push(new ProbeWorker({ pod, container, containerKind, plan: planOf(kind, probe) }, this.#workerPorts));
      }
    }
    const saved = workers.length > 0 ? (this.#ports.store.load(uid) ?? []) : [];
    this.#pods.set(uid, {
      pod,
      workers,
      byProbe: new Map(
        workers.map((worker) => [probeKey(worker.subject.container.name, worker.subject.plan.kind), worker]),
      ),
      saved: new Map(saved.map((result) => [probeKey(result.container, result.kind), result])),
    });
  }

  /** Takes in an inspection of the pod; results read afterwards are about what was seen. */
  observe(uid: PodUid, { containers, podIp, hostIp }: ProbeObservation): void {
    const entry = this.#pods.get(uid);
    if (entry === undefined) return;
    const address = (entry.pod.spec.hostNetwork === true ? hostIp || podIp : podIp) || undefined;
    for (const worker of entry.workers) worker.observe(containers.get(worker.subject.container.name), address);
  }

  /** Probes readiness at once, unless the container is known to be ready or a probe is already under way. */
  requestReadiness(uid: PodUid, container: string): void {
    this.#worker(uid, container, "readiness")?.probeNow();
  }

  /**
   * The pod is being stopped: nothing may restart its regular containers any more. Sidecars serve until the others
   * have gone, so their probes go on; readiness goes on for all.
   */
  beginTermination(uid: PodUid): void {
    for (const worker of this.#pods.get(uid)?.workers ?? []) {
      const { containerKind, plan } = worker.subject;
      if (containerKind === "regular" && plan.kind !== "readiness") worker.stop();
    }
  }

  /** The pod's containers have stopped: forgets it. */
  remove(uid: PodUid): void {
    const entry = this.#pods.get(uid);
    if (entry === undefined) return;
    this.#pods.delete(uid);
    for (const worker of entry.workers) worker.stop();
    if (entry.workers.length > 0) this.#saver.wake(uid);
  }

  /**
   * What the probe says; undefined: there is none, or it has ended. With an `id`, what it says of that very instance,
   * which is nothing yet when it has not been observed.
   */
  result(uid: PodUid, container: string, kind: ProbeKind, id?: ContainerId): ProbeResult | undefined {
    const worker = this.#worker(uid, container, kind);
    if (worker?.result === undefined || id === undefined || worker.id === id) return worker?.result;
    return initialResult(kind);
  }

  /** The probes of a pod as people are shown them. */
  shown(uid: PodUid): readonly ShownProbe[] {
    return (this.#pods.get(uid)?.workers ?? []).map(({ subject, result, nextAt, attempts }) => ({
      container: subject.container.name,
      plan: subject.plan,
      result,
      nextAt,
      attempts,
    }));
  }

  /** Calls the listener for every result that an attempt has changed; returns how to stop that. */
  onChange(listener: ProbeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #worker(uid: PodUid, container: string, kind: ProbeKind): ProbeWorker | undefined {
    return this.#pods.get(uid)?.byProbe.get(probeKey(container, kind));
  }

  #hasStarted({ subject }: ProbeWorker): boolean {
    const startup = this.#worker(uidOf(subject.pod), subject.container.name, "startup")?.result;
    return startup === undefined || startup === "success";
  }

  #decided(worker: ProbeWorker, before: ProbeResult): void {
    const { pod, container, plan } = worker.subject;
    const uid = uidOf(pod);
    const { result } = worker;
    if (result === undefined) return;
    this.#reporter.decided(worker.subject, before, result);
    if (plan.kind === "startup" && result === "success") {
      for (const kind of probeKinds) this.#worker(uid, container.name, kind)?.schedule();
    }
    const news = this.#news.get(uid) ?? [];
    news.push(() => {
      for (const listener of this.#listeners) listener(uid, container.name, plan.kind, result);
    });
    this.#news.set(uid, news);
    this.#saver.wake(uid);
  }

  /** Saved results are good for the first look only; afterwards this process knows better. */
  #takeSaved({ subject }: ProbeWorker, id: ContainerId): ProbeResult | undefined {
    const entry = this.#pods.get(uidOf(subject.pod));
    const key = probeKey(subject.container.name, subject.plan.kind);
    const saved = entry?.saved.get(key);
    entry?.saved.delete(key);
    return saved?.id === id ? saved.result : undefined;
  }

  /**
   * After a start of the agent all running containers are found at once. Their probes spread, by a number that is the
   * same every time, over their period; or over a second where nothing is known yet and somebody waits for the answer.
   */
  #spreadMs({ subject }: ProbeWorker, seen: SeenContainer, restored: boolean): number {
    const { periodMs, kind } = subject.plan;
    const upMs = this.#ports.clock.monotonic() - this.#createdAtMonotonic;
    if (upMs >= periodMs || seen.startedAt >= this.#createdAt) return 0;
    const share = fnv1a32(`${uidOf(subject.pod)}/${subject.container.name}/${kind}`) / 2 ** 32;
    return share * (restored ? periodMs : Math.min(periodMs, hurriedSpreadMs));
  }

  /** Saved before it is announced: what others act on must not be forgotten by an agent that dies now. */
  async #save(uid: PodUid): Promise<void> {
    const news = this.#news.get(uid) ?? [];
    this.#news.delete(uid);
    await this.#saveResults(uid);
    for (const tell of news) tell();
  }

  async #saveResults(uid: PodUid): Promise<void> {
    const entry = this.#pods.get(uid);
    if (entry === undefined) return this.#ports.store.remove(uid);
    const results: SavedResult[] = [];
    for (const { subject, id, result } of entry.workers) {
      if (id !== undefined && result !== undefined) {
        results.push({ container: subject.container.name, kind: subject.plan.kind, id, result });
      }
    }
    await this.#ports.store.save(uid, results);
  }

  #stopAll(): void {
    for (const { workers } of this.#pods.values()) for (const worker of workers) worker.stop();
  }
}

function probeKey(container: string, kind: ProbeKind): string {
  return `${container}/${kind}`;
}
