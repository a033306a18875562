import { CpuSet } from "../../../ground/base/index.ts";
import { type Container, containersOf, type IdentifiedPod, type PodUid, uidOf } from "../../../ground/model/index.ts";
import { AllocationError, type Hint, type HintProvider, type Hints, noOpinion, unexpected } from "../topology/hints.ts";
import type { NumaNodes } from "../topology/numa-nodes.ts";
import { chooseAligned } from "./choose-cpus.ts";
import { cpuHints } from "./cpu-hints.ts";
import type { CpuSettings } from "./cpu-settings.ts";
import { type CpuState, cpusOfPod, withContainer, withoutPod } from "./cpu-state.ts";
import type { CpuTopology } from "./cpu-topology.ts";
import { exclusiveCpusOf, exclusiveCpusOfPod } from "./requested-cpus.ts";
import { TooFewCpusError } from "./take-packed.ts";

export interface ExclusiveCpuPorts {
  readonly topology: CpuTopology;
  readonly numa: NumaNodes;
  /** Who has what is another than before, or is so again. */
  readonly onChange: (state: CpuState) => void;
  readonly metrics?: CpuMetrics;
}

export interface CpuMetrics {
  /** A container asks for CPUs of its own; it did not get them. */
  readonly onRequest: () => void;
  readonly onFailure: () => void;
  /** It got them, or could not, along the edges of cores or caches. */
  readonly onAligned: (boundary: "physical_cpu" | "uncore_cache", isAligned: boolean) => void;
}

/** Gives containers of Guaranteed pods that ask for whole CPUs some of their own: the policy "static". */
export class ExclusiveCpus implements HintProvider {
  readonly #settings: CpuSettings;
  readonly #ports: ExclusiveCpuPorts;
  #state: CpuState;

  constructor(settings: CpuSettings, state: CpuState, ports: ExclusiveCpuPorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#state = state;
  }

  get state(): CpuState {
    return this.#state;
  }

  /** The CPUs that only this container has; undefined: it shares. */
  of(uid: PodUid, container: string): CpuSet | undefined {
    return this.#state.exclusive.get(uid)?.get(container);
  }

  /** Where containers run that have no CPUs of their own: never none, and never there where others want to be alone. */
  get shared(): CpuSet {
    return this.#state.shared.isEmpty ? this.#settings.reserved : this.#state.shared;
  }

  /** Could be given to one container alone. */
  get free(): CpuSet {
    return this.#state.shared.without(this.#settings.reserved);
  }

  /** One that gives from the same, of which nobody hears. */
  onTrial(): ExclusiveCpus {
    const { topology, numa } = this.#ports;
    return new ExclusiveCpus(this.#settings, this.#state, { topology, numa, onChange: () => {} });
  }

  /** CPUs of pods that are gone are for all again. */
  retain(holds: (uid: PodUid) => boolean): void {
    const gone = [...this.#state.exclusive.keys()].filter((uid) => !holds(uid));
    this.#become(gone.reduce(withoutPod, this.#state));
  }

  mark(): () => void {
    const before = this.#state;
    return () => this.#become(before);
  }

  hints(pod: IdentifiedPod, container: Container): Hints {
    const count = exclusiveCpusOf(pod, container);
    if (count === 0) return noOpinion;
    const own = this.of(uidOf(pod), container.name);
    // What it has it keeps, however much it asks for by now.
    if (own !== undefined) return this.#hints({ available: own, reusable: CpuSet.none, count: own.size });
    return this.#hints({ available: this.free, reusable: this.#reusable(pod), count });
  }

  podHints(pod: IdentifiedPod): Hints {
    const count = exclusiveCpusOfPod(pod);
    if (count === 0) return noOpinion;
    const own = cpusOfPod(this.#state, uidOf(pod));
    const isComplete = containersOf(pod).every(
      ({ container }) => exclusiveCpusOf(pod, container) === 0 || this.of(uidOf(pod), container.name) !== undefined,
    );
    if (isComplete) return this.#hints({ available: own, reusable: CpuSet.none, count: own.size });
    return this.#hints({ available: this.free, reusable: this.#reusable(pod).with(own), count });
  }

  allocate(pod: IdentifiedPod, container: Container, { nodes }: Hint): void {
    const count = exclusiveCpusOf(pod, container);
    if (count === 0) return;
    const { metrics } = this.#ports;
    metrics?.onRequest();
    if (this.of(uidOf(pod), container.name) !== undefined) return;
    try {
      const reusable = this.#reusable(pod);
      this.#checkCores(count, reusable);
      const { options } = this.#settings;
      const cpus = chooseAligned({ ...this.#ports, options }, this.free.with(reusable), count, nodes);
      this.#become(withContainer(this.#state, uidOf(pod), container.name, cpus));
      this.#noteAligned(cpus);
    } catch (error) {
      metrics?.onFailure();
      if (this.#settings.options.wholeCoresOnly) metrics?.onAligned("physical_cpu", false);
      throw error instanceof TooFewCpusError ? unexpected(error.message) : error;
    }
  }

  /** Init containers have ended when the others start; a sidecar has not. */
  #reusable(pod: IdentifiedPod): CpuSet {
    let [ended, running] = [CpuSet.none, CpuSet.none];
    for (const { kind, container } of containersOf(pod)) {
      const own = this.of(uidOf(pod), container.name) ?? CpuSet.none;
      if (kind === "init") ended = ended.with(own);
      else running = running.with(own);
    }
    return ended.without(running);
  }

  #checkCores(count: number, reusable: CpuSet): void {
    if (!this.#settings.options.wholeCoresOnly) return;
    const { topology } = this.#ports;
    const threads = topology.threadsPerCore;
    const refuse = (why: string): never => {
      throw new AllocationError("SMTAlignmentError", `SMT Alignment Error: ${why}`);
    };
    if (count % threads !== 0) refuse(`requested ${count} cpus not multiple cpus per core = ${threads}`);
    const available = this.#state.shared.without(topology.wholeCores(this.#settings.reserved)).with(reusable).size;
    if (count > available) {
      const amounts = `available physical CPUs = ${available}, requested CPUs = ${count}, CPUs per core = ${threads}`;
      refuse(`not enough free physical CPUs: ${amounts}`);
    }
  }

  #noteAligned(cpus: CpuSet): void {
    const { topology, metrics } = this.#ports;
    if (this.#settings.options.wholeCoresOnly) metrics?.onAligned("physical_cpu", true);
    if (topology.caches.some((cache) => cpus.isWithin(cache.cpus))) metrics?.onAligned("uncore_cache", true);
  }

  #hints(request: Parameters<typeof cpuHints>[1]): Hints {
    const { bySocket } = this.#settings.options;
    return new Map([["cpu", cpuHints({ ...this.#ports, bySocket }, request)]]);
  }

  #become(state: CpuState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#ports.onChange(state);
  }
}
