import { CpuSet } from "../../../ground/base/index.ts";
import { type CpuTopology, type CpuUnit, type UnitTree, union } from "./cpu-topology.ts";

/** There are not as many CPUs as were asked for. */
export class TooFewCpusError extends Error {
  override readonly name = "TooFewCpusError";

  constructor(requested: number, available: number) {
    super(`not enough cpus available to satisfy request: requested=${requested}, available=${available}`);
  }
}

export interface PackingOptions {
  /** "spread": threads of different cores are taken before siblings. */
  readonly order: "packed" | "spread";
  /** Tries to stay within as few last-level caches as whole ones and one part allow. */
  readonly keepsToCaches: boolean;
}

const plainPacking: PackingOptions = { order: "packed", keepsToCaches: false };

/**
 * Chooses CPUs so that large free units stay whole: first whole NUMA nodes or sockets where the request is as large,
 * then whole cores, then single threads, and always there where the least is left.
 */
export function takePacked(
  topology: CpuTopology,
  available: CpuSet,
  count: number,
  options: PackingOptions = plainPacking,
): CpuSet {
  if (count > available.size) throw new TooFewCpusError(count, available.size);
  const taking = new Taking(topology, available, count);
  taking.takeWhole(taking.largestInOrder());
  taking.takeWhole(taking.partsInOrder());
  if (options.keepsToCaches) taking.takeCaches();
  if (options.order === "packed") {
    taking.takeWhole(taking.coresInOrder());
    taking.takeSingle(taking.coresInOrder());
  } else taking.takeSingle(taking.socketsInOrder());
  return taking.taken;
}

/** NUMA nodes that have any of these CPUs, the fullest first. */
export function nodesInOrder(topology: CpuTopology, available: CpuSet): readonly CpuUnit[] {
  return new Taking(topology, available, 0).nodesInOrder();
}

class Taking {
  readonly #topology: CpuTopology;
  #free: CpuSet;
  #taken = CpuSet.none;
  #needed: number;

  constructor(topology: CpuTopology, available: CpuSet, count: number) {
    this.#topology = topology;
    this.#free = available;
    this.#needed = count;
  }

  get taken(): CpuSet {
    return this.#taken;
  }

  /** Units with free CPUs: those with the fewest first, then by number. */
  fullestFirst<Unit extends CpuUnit>(units: readonly Unit[]): readonly Unit[] {
    return units
      .map((unit) => ({ unit, free: unit.cpus.sizeOfCommon(this.#free) }))
      .filter(({ free }) => free > 0)
      .sort((a, b) => a.free - b.free || a.unit.id - b.unit.id)
      .map(({ unit }) => unit);
  }

  largestInOrder(): readonly UnitTree[] {
    return this.fullestFirst(this.#topology.tree);
  }

  /** The units one level below the largest. */
  partsInOrder(): readonly UnitTree["parts"][number][] {
    return this.largestInOrder().flatMap(({ parts }) => this.fullestFirst(parts));
  }

  coresInOrder(): readonly CpuUnit[] {
    return this.partsInOrder().flatMap(({ cores }) => this.fullestFirst(cores));
  }

  nodesInOrder(): readonly CpuUnit[] {
    return this.#topology.larger === "nodes" ? this.largestInOrder() : this.partsInOrder();
  }

  socketsInOrder(): readonly CpuUnit[] {
    return this.#topology.larger === "nodes" ? this.partsInOrder() : this.largestInOrder();
  }

  /** Units of which nothing is taken yet, as long as one is not more than what is still needed. */
  takeWhole(units: readonly CpuUnit[]): void {
    for (const { cpus } of units) {
      if (cpus.size <= this.#needed && cpus.isWithin(this.#free)) this.#take(cpus);
    }
  }

  takeSingle(units: readonly CpuUnit[]): void {
    for (const { cpus } of units) {
      for (const cpu of cpus.and(this.#free)) {
        if (this.#needed === 0) return;
        this.#take(CpuSet.of([cpu]));
      }
    }
  }

  takeCaches(): void {
    const inOrder = (): readonly CpuUnit[] =>
      this.nodesInOrder().flatMap((node) =>
        this.fullestFirst(this.#topology.caches.filter(({ cpus }) => cpus.sizeOfCommon(node.cpus) > 0)),
      );
    for (const cache of inOrder()) {
      if (this.#needed >= this.#topology.cpusPerCache) this.takeWhole(inOrder());
      if (this.#needed === 0) return;
      this.#takePartOf(cache);
    }
  }

  /** The rest of the request from one cache, if that has the very number of CPUs in its lowest cores. */
  #takePartOf(cache: CpuUnit): void {
    const { threadsPerCore, cores } = this.#topology;
    const within = this.#free.and(cache.cpus);
    const lowest = cores
      .filter(({ cpus }) => cpus.sizeOfCommon(within) > 0)
      .slice(0, Math.ceil(this.#needed / threadsPerCore));
    let cpus = union(lowest).and(this.#free);
    if (this.#needed % 2 === 1 && threadsPerCore > 1 && cpus.size > this.#needed) {
      cpus = CpuSet.of([...cpus].slice(0, -1));
    }
    if (cpus.size === this.#needed) this.#take(cpus);
  }

  #take(cpus: CpuSet): void {
    this.#free = this.#free.without(cpus);
    this.#taken = this.#taken.with(cpus);
    this.#needed -= cpus.size;
  }
}
