import { type Container, containersOf, type IdentifiedPod } from "../../../ground/model/index.ts";
import { AllocationError, type Hint, type HintProvider, type Hints } from "./hints.ts";
import { type AlignmentPolicy, type MergeSettings, mergeHints } from "./merge-hints.ts";
import { compareMasks, type NumaMask, type NumaNodes } from "./numa-nodes.ts";

export interface AlignmentSettings {
  readonly policy: AlignmentPolicy;
  /** Whether every container is aligned by itself, or all containers of a pod with each other. */
  readonly scope: "container" | "pod";
  /** Of sets of as many NUMA nodes, those near each other are preferred. */
  readonly prefersClosest: boolean;
}

export interface AlignmentPorts {
  /** In the order in which they give. */
  readonly providers: readonly HintProvider[];
  /** From each NUMA node to each, in the order of their numbers. */
  readonly distances: readonly (readonly number[])[];
  /** For metrics: a container, or a pod, got what it asked for on one NUMA node, or could not. */
  readonly onSingleNode?: (scope: AlignmentSettings["scope"], isAligned: boolean) => void;
}

/** Has the providers give a pod what it asks for, from NUMA nodes on which they agree as far as the policy asks. */
export class Alignment {
  readonly #settings: AlignmentSettings;
  readonly #merge: MergeSettings | undefined;
  readonly #ports: AlignmentPorts;

  constructor(settings: AlignmentSettings, nodes: NumaNodes, ports: AlignmentPorts) {
    const { policy, prefersClosest } = settings;
    this.#settings = settings;
    this.#ports = ports;
    if (policy === "none") return;
    const compareSets =
      prefersClosest && policy !== "single-numa-node"
        ? (a: NumaMask, b: NumaMask) => meanDistance(a, ports.distances) - meanDistance(b, ports.distances)
        : compareMasks;
    this.#merge = { policy, allNodes: nodes.all, compareSets };
  }

  /** Gives the pod all that it asks for, or nothing. Throws AllocationError; the function takes it back. */
  give(pod: IdentifiedPod): () => void {
    const marks = this.#ports.providers.map((provider) => provider.mark());
    const takeBack = (): void => {
      for (const restore of marks) restore();
    };
    try {
      const shared = this.#settings.scope === "pod" ? this.#hintFor((provider) => provider.podHints(pod)) : undefined;
      for (const container of alignedContainers(pod)) {
        this.#allocate(pod, container, shared ?? this.#hintFor((provider) => provider.hints(pod, container)));
      }
      return takeBack;
    } catch (error) {
      takeBack();
      throw error;
    }
  }

  /** Gives single containers of a pod that runs already what they ask for, wherever it is. */
  giveAnywhere(pod: IdentifiedPod, container: Container): void {
    const marks = this.#ports.providers.map((provider) => provider.mark());
    try {
      this.#allocate(pod, container, anywhere);
    } catch (error) {
      for (const restore of marks) restore();
      throw error;
    }
  }

  #allocate(pod: IdentifiedPod, container: Container, hint: Hint): void {
    for (const provider of this.#ports.providers) provider.allocate(pod, container, hint);
  }

  #hintFor(ask: (provider: HintProvider) => Hints): Hint {
    if (this.#merge === undefined) return anywhere;
    const { hint, admits } = mergeHints(this.#ports.providers.map(ask), this.#merge);
    if (this.#merge.policy === "single-numa-node") this.#ports.onSingleNode?.(this.#settings.scope, admits);
    if (!admits) {
      throw new AllocationError("TopologyAffinityError", "Resources cannot be allocated with Topology locality");
    }
    return hint;
  }
}

const anywhere: Hint = { nodes: undefined, isPreferred: false };

/** In the order in which they get: those that begin first may leave something to others. */
function alignedContainers(pod: IdentifiedPod): readonly Container[] {
  return containersOf(pod).flatMap(({ kind, container }) => (kind === "ephemeral" ? [] : [container]));
}

/** Over all pairs of nodes, each with itself included. */
function meanDistance(mask: NumaMask, distances: AlignmentPorts["distances"]): number {
  const indexes = distances.map((_, index) => index).filter((index) => (mask >>> index) & 1);
  const all = indexes.flatMap((from) => indexes.map((to) => distances[from]?.[to] ?? 0));
  return all.reduce((sum, distance) => sum + distance, 0) / Math.max(1, all.length);
}
