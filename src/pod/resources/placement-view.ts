import type { MachineTopology } from "../../connections/host/index.ts";
import { CpuSet } from "../../ground/base/index.ts";
import type { PodUid } from "../../ground/model/index.ts";
import { allExclusive } from "./cpu/cpu-state.ts";
import type { MemoryBlock, MemoryTable } from "./memory/memory-state.ts";
import type { Placement } from "./placement.ts";
import type { PlacementSettings } from "./placement-settings.ts";

/** Who has which CPUs and memory of this machine. */
export interface PlacementView {
  readonly alignment: PlacementSettings["alignment"];
  readonly nodes: readonly NodeView[];
  /** Undefined: nobody can have CPUs of his own. */
  readonly cpu:
    | {
        readonly reserved: CpuSet;
        readonly shared: CpuSet;
        readonly exclusive: CpuSet;
        /** Could be given to one container alone. */
        readonly free: CpuSet;
      }
    | undefined;
  readonly containers: readonly ContainerView[];
}

export interface NodeView {
  readonly id: number;
  readonly cpus: CpuSet;
  readonly memoryBytes: number;
  /** By type; empty: memory is nobody's own here. */
  readonly memory: ReadonlyMap<string, MemoryTable>;
  /** The nodes that it serves together with. */
  readonly group: readonly number[];
}

export interface ContainerView {
  readonly uid: PodUid;
  readonly container: string;
  readonly cpus: CpuSet | undefined;
  readonly memory: readonly MemoryBlock[];
}

/** `topology` is read anew where nothing is given out, because then nobody has needed it yet. */
export function placementView(
  placement: Pick<Placement, "given" | "settings">,
  topology: MachineTopology = { nodes: [] },
): PlacementView {
  const { given, settings } = placement;
  const cpus = given?.cpus;
  const memory = given?.memory?.state;
  const containers = new Map<string, ContainerView>();
  for (const [uid, sets] of cpus?.given.state.exclusive ?? []) {
    for (const [container, own] of sets) {
      containers.set(`${uid} ${container}`, { uid, container, cpus: own, memory: [] });
    }
  }
  for (const [uid, blocks] of memory?.blocks ?? []) {
    for (const [container, own] of blocks) {
      const key = `${uid} ${container}`;
      containers.set(key, { uid, container, cpus: containers.get(key)?.cpus, memory: own });
    }
  }
  return {
    alignment: settings.alignment,
    nodes: (given?.topology ?? topology).nodes.map(({ id, cpus: own, memoryBytes }) => ({
      id,
      cpus: CpuSet.of(own.map((cpu) => cpu.id)),
      memoryBytes,
      memory: memory?.machine.get(id)?.tables ?? new Map(),
      group: memory?.machine.get(id)?.group ?? [id],
    })),
    cpu: cpus && {
      reserved: cpus.reserved,
      shared: cpus.given.shared,
      exclusive: allExclusive(cpus.given.state),
      free: cpus.given.free,
    },
    containers: [...containers.values()],
  };
}
