import type { RuntimeService } from "../../../connections/cri/index.ts";
import { CgroupPaths } from "../../../connections/host/index.ts";
import {
  type Clock,
  isAbort,
  type Logger,
  messageOf,
  unlessAborted,
  withDeadline,
} from "../../../ground/base/index.ts";
import {
  type CgroupNaming,
  type IdentifiedPod,
  newestOf,
  type ObservedPod,
  type PodUid,
  uidOf,
} from "../../../ground/model/index.ts";
import type { ContainerUse, PodUse } from "../plan/usage.ts";
import type { PressureSources } from "./ports.ts";

export interface PodMeterPorts {
  readonly cgroups: PressureSources["cgroups"];
  readonly naming: () => CgroupNaming;
  /** As the runtime was last seen. */
  readonly observed: (uid: PodUid) => ObservedPod | undefined;
  readonly runtime: Pick<RuntimeService, "listContainerStats">;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Nobody waits for a runtime while memory gets less; what it said before has to do. */
const runtimeWithinMs = 500;

/** What pods use of memory and of the machine's processes, read from their cgroups when somebody asks. */
export class PodMeter {
  readonly #ports: PodMeterPorts;
  #paths: CgroupPaths | undefined;
  /** What the runtime says of containers, by id: for pods without a cgroup of their own. */
  #told: ReadonlyMap<string, number> = new Map();
  #isAsking = false;
  #problem: string | undefined;

  constructor(ports: PodMeterPorts) {
    this.#ports = ports;
  }

  /** Asks the runtime, where pods have no cgroups of their own that could be read. */
  async refresh(signal: AbortSignal): Promise<void> {
    const { naming, clock, log } = this.#ports;
    if (naming().perQos || this.#isAsking) return;
    const late = (): Error => new Error(`no answer within ${runtimeWithinMs} ms`);
    try {
      await withDeadline(clock, runtimeWithinMs, late, signal, (bounded) => unlessAborted(this.#ask(signal), bounded));
      this.#problem = undefined;
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      const reason = messageOf(error);
      // Not with each look, which is ten times a second when it matters.
      if (reason !== this.#problem) log.warn("The runtime did not say what containers use", { reason });
      this.#problem = reason;
    }
  }

  /** An answer that comes late is still better than the one before it. */
  async #ask(signal: AbortSignal): Promise<void> {
    this.#isAsking = true;
    try {
      const { stats } = await this.#ports.runtime.listContainerStats({ filter: undefined }, { signal });
      this.#told = new Map(
        stats.map(({ attributes, memory }) => [attributes?.id ?? "", Number(memory?.workingSetBytes?.value ?? 0n)]),
      );
    } finally {
      this.#isAsking = false;
    }
  }

  /** undefined: something of it runs, but how much it uses can't be told. */
  use(pod: IdentifiedPod): PodUse | undefined {
    const { cgroups, naming, observed } = this.#ports;
    const uid = uidOf(pod);
    const running = observed(uid)?.containers.filter(({ state }) => state === "running") ?? [];
    if (!naming().perQos) {
      const told = running.map(({ id }) => this.#told.get(id));
      if (told.some((bytes) => bytes === undefined)) return undefined;
      return { memoryBytes: told.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0) };
    }
    const path = this.#pathsNow().podPath(uid);
    const memory = path === undefined ? undefined : cgroups.memory(path);
    // A pod that has yet to start holds nothing that could be given back.
    if (path === undefined || memory === undefined) return running.length === 0 ? nothing : undefined;
    return { memoryBytes: memory.workingSetBytes, tasks: cgroups.tasks(path) };
  }

  /** For the words of an eviction. */
  containers(pod: IdentifiedPod): readonly ContainerUse[] {
    const { cgroups, naming, observed } = this.#ports;
    const seen = observed(uidOf(pod));
    const path = naming().perQos ? this.#pathsNow().podPath(uidOf(pod)) : undefined;
    if (seen === undefined) return [];
    const pathOf = path === undefined ? () => undefined : this.#pathsNow().below(path);
    const names = [...new Set(seen.containers.map(({ name }) => name))];
    return names.flatMap((name) => {
      const newest = newestOf(seen, name);
      if (newest?.state !== "running") return [];
      const own = pathOf(newest.id);
      const memoryBytes = own === undefined ? this.#told.get(newest.id) : cgroups.memory(own)?.workingSetBytes;
      return [{ name, memoryBytes }];
    });
  }

  /** How cgroups are named is known once the runtime was asked. */
  #pathsNow(): CgroupPaths {
    this.#paths ??= new CgroupPaths(this.#ports.cgroups, this.#ports.naming());
    return this.#paths;
  }

  forgetAllBut(uids: ReadonlySet<PodUid>): void {
    this.#paths?.forgetAllBut(uids);
  }
}

const nothing: PodUse = { memoryBytes: 0, tasks: 0 };
