import {
  aFewAtOnce,
  type Clock,
  CpuSet,
  KeyedWorkers,
  type Logger,
  messageOf,
  Pause,
  settleAtMost,
  type TaskScope,
} from "../../../ground/base/index.ts";
import type { ContainerId, IdentifiedPod } from "../../../ground/model/index.ts";

/** A period below nothing is a valid setting, and would keep a processor busy. */
const shortestPeriodMs = 1_000;

/** A container that runs, or was just made. */
export interface KeptContainer {
  readonly id: ContainerId;
  readonly name: string;
  readonly pod: IdentifiedPod;
}

export interface CpusetKeeperPorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly periodMs: number;
  /** Nothing is kept, and nothing remembered, where no container has CPUs of its own. */
  readonly pinsCpus: boolean;
  /** Containers that run, of pods that are worked on. */
  readonly running: () => Iterable<KeptContainer>;
  /** Where the container is to run; empty: anywhere. */
  readonly wantedFor: (container: KeptContainer) => string;
  readonly tellRuntime: (id: ContainerId, cpus: string, signal: AbortSignal) => Promise<void>;
  /** Where the kernel lets it run; undefined where that can't be told. */
  readonly inForce: (container: KeptContainer) => Promise<string | undefined>;
}

/**
 * Keeps every container on its CPUs: those it has alone, or those that nobody has alone. Whoever is in the way of a
 * newcomer is moved at once; what others change is put right at the next look.
 */
export class CpusetKeeper {
  readonly #ports: CpusetKeeperPorts;
  readonly #pause: Pause;
  readonly #workers: KeyedWorkers<ContainerId>;
  /** What each container was last told, or was found to have. */
  readonly #told = new Map<ContainerId, string>();
  readonly #kept = new Map<ContainerId, KeptContainer>();
  /** Not seen to run yet, and for how many looks. */
  readonly #made = new Map<ContainerId, { readonly container: KeptContainer; looks: number }>();
  readonly #complaints = new Map<ContainerId, string>();

  constructor(scope: TaskScope, ports: CpusetKeeperPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
    // Each by itself: a container that can't be moved holds up nobody.
    this.#workers = new KeyedWorkers(scope, (id, signal) => this.#move(id, signal));
  }

  /** A container was made for these CPUs; others may be free by now. */
  made(container: KeptContainer, cpus: string): void {
    if (!this.#ports.pinsCpus) return;
    this.#made.set(container.id, { container, looks: 0 });
    this.#told.set(container.id, cpus);
    this.#kept.set(container.id, container);
    this.#workers.wake(container.id);
  }

  /** Who may run where has changed. */
  wake(): void {
    this.#look();
    for (const container of this.#kept.values()) {
      const wanted = this.#ports.wantedFor(container);
      const told = this.#told.get(container.id);
      // What nobody knows is looked at first, at the next look: it may be right.
      if (wanted !== "" && told !== undefined && told !== wanted) this.#workers.wake(container.id);
    }
  }

  /** Looks at all containers now and then, for as long as the signal lets it. */
  async run(signal: AbortSignal): Promise<void> {
    while (this.#ports.pinsCpus) {
      await this.check();
      await this.#pause.wait(Math.max(this.#ports.periodMs, shortestPeriodMs), signal);
    }
  }

  /** More is known than at the last look. */
  soon(): void {
    this.#pause.cutShort();
  }

  /** Moves every container that is not where it should be. */
  async check(): Promise<void> {
    // What is not seen to run by now has ended, or never will.
    for (const [id, made] of this.#made) if (++made.looks > 2) this.#made.delete(id);
    this.#look();
    await settleAtMost(aFewAtOnce, [...this.#kept.values()], async (container) => {
      const wanted = this.#ports.wantedFor(container);
      if (wanted === "") return;
      const told = this.#told.get(container.id);
      const found = told === undefined || told === wanted ? await this.#inForce(container) : undefined;
      if (found !== undefined && isSame(found, wanted)) this.#told.set(container.id, wanted);
      else if (found !== undefined || told !== wanted) {
        this.#told.delete(container.id);
        this.#workers.wake(container.id);
      }
    });
  }

  #look(): void {
    this.#kept.clear();
    for (const container of this.#ports.running()) {
      this.#kept.set(container.id, container);
      this.#made.delete(container.id);
    }
    for (const [id, { container }] of this.#made) this.#kept.set(id, container);
    for (const known of [this.#told, this.#complaints]) {
      for (const id of known.keys()) if (!this.#kept.has(id)) known.delete(id);
    }
  }

  async #inForce(container: KeptContainer): Promise<string | undefined> {
    // What is gone meanwhile, or can't be read, is not found to be wrong.
    return await this.#ports.inForce(container).catch(() => undefined);
  }

  async #move(id: ContainerId, signal: AbortSignal): Promise<void> {
    for (;;) {
      const container = this.#kept.get(id);
      const wanted = container === undefined ? "" : this.#ports.wantedFor(container);
      if (container === undefined || wanted === "" || this.#told.get(id) === wanted) return;
      try {
        await this.#ports.tellRuntime(id, wanted, signal);
        this.#told.set(id, wanted);
        this.#complaints.delete(id);
      } catch (error) {
        if (signal.aborted) throw error;
        this.#complain(container, wanted, error);
        return;
      }
    }
  }

  /** Said once for as long as it stays the same; the next look is another try. */
  #complain({ id, name, pod }: KeptContainer, cpus: string, error: unknown): void {
    // It never got to run, or has ended.
    this.#made.delete(id);
    if (this.#complaints.get(id) === messageOf(error)) return;
    this.#complaints.set(id, messageOf(error));
    const { name: podName, namespace } = pod.metadata;
    const fields = { pod: podName, namespace, container: name, cpus, err: error };
    this.#ports.log.warn("Could not move a container to its CPUs; trying again at the next look", fields);
  }
}

function isSame(found: string, wanted: string): boolean {
  return CpuSet.parse(found).equals(CpuSet.parse(wanted));
}
