import type { CpuPlace, MachineTopology } from "../../../connections/host/index.ts";
import { CpuSet } from "../../../ground/base/index.ts";

/** CPUs that belong together: a core, a socket, a NUMA node, those that share a cache. */
export interface CpuUnit {
  readonly id: number;
  readonly cpus: CpuSet;
}

/** A unit, and the smaller ones that it consists of. */
export interface UnitTree extends CpuUnit {
  readonly parts: readonly (CpuUnit & { readonly cores: readonly CpuUnit[] })[];
}

/** How the CPUs of a machine lie to each other, for those who choose among them. */
export class CpuTopology {
  readonly cpus: CpuSet;
  /** Those that have CPUs. */
  readonly nodes: readonly CpuUnit[];
  readonly sockets: readonly CpuUnit[];
  /** A core is named by the lowest of its CPUs. */
  readonly cores: readonly CpuUnit[];
  readonly caches: readonly CpuUnit[];
  /** Of the largest core: a sibling that is offline does not make two of its like. */
  readonly threadsPerCore: number;
  readonly cpusPerCache: number;
  /** Which of NUMA nodes and sockets are the larger units, and all of them as a tree. */
  readonly larger: "nodes" | "sockets";
  readonly tree: readonly UnitTree[];

  constructor({ nodes }: MachineTopology) {
    const places = nodes.flatMap(({ id: node, cpus }) => cpus.map((cpu) => ({ ...cpu, node })));
    this.cpus = CpuSet.of(places.map(({ id }) => id));
    this.nodes = unitsBy(places, ({ node }) => node);
    this.sockets = unitsBy(places, ({ socket }) => socket);
    this.cores = coresOf(places);
    // Where all of a node share one cache, there is nothing smaller than the socket to keep to.
    this.caches = unitsBy(places, ({ cache, socket }) => cache ?? socket);
    this.threadsPerCore = Math.max(1, ...this.cores.map(({ cpus }) => cpus.size));
    this.cpusPerCache = Math.max(1, Math.floor(this.cpus.size / Math.max(1, this.caches.length)));
    this.larger = this.sockets.length >= this.nodes.length ? "nodes" : "sockets";
    const [outer, inner] = this.larger === "nodes" ? [this.nodes, this.sockets] : [this.sockets, this.nodes];
    this.tree = outer.map((unit) => ({
      ...unit,
      parts: overlapping(inner, unit.cpus).map((part) => ({ ...part, cores: overlapping(this.cores, part.cpus) })),
    }));
  }

  /** All threads of the cores that any of these CPUs belongs to. */
  wholeCores(cpus: CpuSet): CpuSet {
    return union(this.cores.filter((core) => core.cpus.sizeOfCommon(cpus) > 0));
  }

  nodeOf(cpu: number): number {
    return this.nodes.find((node) => node.cpus.has(cpu))?.id ?? 0;
  }
}

export function union(units: readonly CpuUnit[]): CpuSet {
  return units.reduce((sum, { cpus }) => sum.with(cpus), CpuSet.none);
}

function overlapping(units: readonly CpuUnit[], cpus: CpuSet): readonly CpuUnit[] {
  return units.flatMap((unit) => (unit.cpus.sizeOfCommon(cpus) === 0 ? [] : [{ ...unit, cpus: unit.cpus.and(cpus) }]));
}

type Place = CpuPlace & { readonly node: number };

function unitsBy(places: readonly Place[], idOf: (place: Place) => number): readonly CpuUnit[] {
  const members = new Map<number, number[]>();
  for (const place of places) {
    const id = idOf(place);
    const present = members.get(id);
    if (present === undefined) members.set(id, [place.id]);
    else present.push(place.id);
  }
  return [...members].map(([id, cpus]) => ({ id, cpus: CpuSet.of(cpus) })).sort((a, b) => a.id - b.id);
}

function coresOf(places: readonly Place[]): readonly CpuUnit[] {
  const lowest = new Map<string, number>();
  const nameOf = ({ node, socket, core }: Place): string => `${node} ${socket} ${core}`;
  for (const place of places) {
    lowest.set(nameOf(place), Math.min(lowest.get(nameOf(place)) ?? place.id, place.id));
  }
  return unitsBy(places, (place) => lowest.get(nameOf(place)) ?? place.id);
}
