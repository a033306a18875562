import { type Container, containersOf, type IdentifiedPod, type PodUid, uidOf } from "../../../ground/model/index.ts";
import { type Hint, type HintProvider, type Hints, noOpinion, unexpected } from "../topology/hints.ts";
import { compareMasks, isWithin, type NumaMask, type NumaNodes, widthOf } from "../topology/numa-nodes.ts";
import { breaksGroups, type MemoryHint, memoryHints } from "./memory-hints.ts";
import {
  blocksOf,
  type MemoryBlock,
  type MemoryState,
  taken,
  withBlocks,
  withoutContainer,
  withoutPodMemory,
} from "./memory-state.ts";
import { type RequestedMemory, requestedMemory, requestedMemoryOfPod } from "./requested-memory.ts";

export interface PinnedMemoryPorts {
  readonly numa: NumaNodes;
  readonly onChange: (state: MemoryState) => void;
  readonly metrics?: { readonly onRequest: () => void; readonly onFailure: () => void };
}

/** Gives containers of Guaranteed pods memory of certain NUMA nodes: the policy "Static". */
export class PinnedMemory implements HintProvider {
  readonly #ports: PinnedMemoryPorts;
  #state: MemoryState;

  constructor(state: MemoryState, ports: PinnedMemoryPorts) {
    this.#state = state;
    this.#ports = ports;
  }

  get state(): MemoryState {
    return this.#state;
  }

  /** The NUMA nodes whose memory the container may use, rising; none: any. */
  nodesOf(uid: PodUid, container: string): readonly number[] {
    const ids = new Set(blocksOf(this.#state, uid, container)?.flatMap(({ nodes }) => nodes));
    return [...ids].sort((a, b) => a - b);
  }

  /** One that gives from the same, of which nobody hears. */
  onTrial(): PinnedMemory {
    return new PinnedMemory(this.#state, { numa: this.#ports.numa, onChange: () => {} });
  }

  retain(holds: (uid: PodUid) => boolean): void {
    const gone = [...this.#state.blocks.keys()].filter((uid) => !holds(uid));
    this.#become(gone.reduce(withoutPodMemory, this.#state));
  }

  /** The container is about to start: init containers before it have ended, and leave what nobody uses again. */
  starting(pod: IdentifiedPod, container: string): void {
    const names = containersOf(pod);
    const before = names.slice(
      0,
      names.findIndex((entry) => entry.container.name === container),
    );
    const ended = before.filter(({ kind }) => kind === "init").map((entry) => entry.container.name);
    this.#become(ended.reduce((state, name) => withoutContainer(state, uidOf(pod), name), this.#state));
  }

  mark(): () => void {
    const before = this.#state;
    return () => this.#become(before);
  }

  hints(pod: IdentifiedPod, container: Container): Hints {
    const own = blocksOf(this.#state, uidOf(pod), container.name);
    if (own !== undefined) return this.#hintsOf(own);
    return this.#hintsFor(pod, requestedMemory(pod, container), this.#endedBefore(pod, container.name));
  }

  podHints(pod: IdentifiedPod): Hints {
    for (const { container } of containersOf(pod)) {
      const own = blocksOf(this.#state, uidOf(pod), container.name);
      if (own !== undefined) return this.#hintsOf(own);
    }
    return this.#hintsFor(pod, requestedMemoryOfPod(pod), initsOf(pod));
  }

  allocate(pod: IdentifiedPod, container: Container, hint: Hint): void {
    const requested = requestedMemory(pod, container);
    if (requested.size === 0) return;
    const { metrics, numa } = this.#ports;
    metrics?.onRequest();
    if (blocksOf(this.#state, uidOf(pod), container.name) !== undefined) return;
    try {
      const nodes = numa.idsOf(this.#choose(pod, container, requested, hint));
      const blocks = [...requested].map(([type, bytes]): MemoryBlock => ({ nodes, type, bytes }));
      this.#become(this.#given(pod, container, blocks));
    } catch (error) {
      metrics?.onFailure();
      throw error;
    }
  }

  /** From which nodes it comes: those of the hint, as far as they have it. */
  #choose(
    pod: IdentifiedPod,
    container: Container,
    requested: RequestedMemory,
    { nodes, isPreferred }: Hint,
  ): NumaMask {
    const { numa } = this.#ports;
    const { machine } = this.#state;
    const hints = this.#memoryHints(pod, requested, this.#endedBefore(pod, container.name));
    let chosen: Hint = { nodes, isPreferred };
    if (nodes === undefined) {
      const best = bestOf(hints);
      const none = "failed to get the default NUMA affinity, no NUMA nodes with enough memory is available";
      if (best === undefined) throw problem(none);
      if (!best.isPreferred && isPreferred) throw problem("failed to find the default preferred hint");
      chosen = best;
    }
    const mask = chosen.nodes ?? numa.all;
    const ids = numa.idsOf(mask);
    const isAlone = widthOf(mask) === 1;
    const isEnough = [...requested].every(
      ([type, bytes]) => ids.reduce((sum, id) => sum + (machine.get(id)?.tables.get(type)?.free ?? 0), 0) >= bytes,
    );
    if (isEnough && !breaksGroups(machine, ids)) return mask;
    // A single node that serves in a group can do so here too; a group can't be split for it.
    if (isEnough && !isAlone) throw problem("preferred hint violates NUMA node allocation");
    const wider = bestOf(hints.filter((hint) => isWithin(mask, hint.nodes)));
    if (wider === undefined) throw problem("failed to find NUMA nodes to extend the current topology hint");
    if (!wider.isPreferred && chosen.isPreferred) throw problem("failed to find the extended preferred hint");
    return wider.nodes;
  }

  /** What init containers of the pod have had on the same nodes is used again before anything new is taken. */
  #given(pod: IdentifiedPod, container: Container, blocks: readonly MemoryBlock[]): MemoryState {
    const uid = uidOf(pod);
    let state = this.#state;
    for (const block of blocks) {
      let missing = block.bytes;
      for (const name of this.#endedBefore(pod, container.name)) {
        const left = blocksOf(state, uid, name)?.map((own): MemoryBlock => {
          if (own.type !== block.type || !areSame(own.nodes, block.nodes)) return own;
          const reused = Math.min(own.bytes, missing);
          missing -= reused;
          return { ...own, bytes: own.bytes - reused };
        });
        if (left !== undefined) state = withBlocks(state, uid, name, left);
      }
      state = { ...state, machine: taken(state.machine, { ...block, bytes: missing }) };
    }
    return withBlocks(state, uid, container.name, blocks);
  }

  /** Those whose memory the container may use again: a later one runs after it. */
  #endedBefore(pod: IdentifiedPod, container: string): readonly string[] {
    const names = initsOf(pod);
    const position = names.indexOf(container);
    return position === -1 ? names : names.slice(0, position);
  }

  #hintsFor(pod: IdentifiedPod, requested: RequestedMemory, ended: readonly string[]): Hints {
    const hints = requested.size === 0 ? [] : this.#memoryHints(pod, requested, ended);
    // Where nothing fits, others may have an opinion; the giving will fail in any case.
    if (hints.length === 0) return noOpinion;
    return new Map([...requested.keys()].map((type) => [type, hints]));
  }

  #memoryHints(pod: IdentifiedPod, requested: RequestedMemory, ended: readonly string[]): readonly MemoryHint[] {
    const own = ended.flatMap((name) => blocksOf(this.#state, uidOf(pod), name) ?? []);
    const reusable = (nodes: readonly number[], type: string): number =>
      own.reduce((sum, block) => (block.type === type && areSame(block.nodes, nodes) ? sum + block.bytes : sum), 0);
    return memoryHints(this.#state.machine, this.#ports.numa, requested, reusable);
  }

  /** What a container has it keeps. */
  #hintsOf(blocks: readonly MemoryBlock[]): Hints {
    const { numa } = this.#ports;
    return new Map(blocks.map(({ type, nodes }) => [type, [{ nodes: numa.maskOf(nodes), isPreferred: true }]]));
  }

  #become(state: MemoryState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#ports.onChange(state);
  }
}

function initsOf(pod: IdentifiedPod): readonly string[] {
  return containersOf(pod)
    .filter(({ kind }) => kind === "init")
    .map(({ container }) => container.name);
}

function areSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id, index) => id === b[index]);
}

function bestOf(hints: readonly MemoryHint[]): MemoryHint | undefined {
  return hints.toSorted((a, b) => Number(b.isPreferred) - Number(a.isPreferred) || compareMasks(a.nodes, b.nodes))[0];
}

function problem(text: string): Error {
  return unexpected(`[memorymanager] ${text}`);
}
