import type { Logger } from "../../ground/base/index.ts";
import type { PodChange, PodSource } from "../../ground/model/index.ts";
import type { OrphanedPods } from "./orphaned-pods.ts";
import type { PodRegistry } from "./registry.ts";
import type { WantedPods } from "./wanted-pods.ts";

/** Port: the one stream of what all sources want. */
interface ChangeStream {
  next(signal: AbortSignal): Promise<PodChange>;
  /** It was acted upon. */
  acknowledge(change: PodChange): void;
  isReady(source: PodSource): boolean;
  /** Every source has spoken. */
  allReady(): boolean;
}

export interface IntakePorts {
  readonly changes: ChangeStream;
  readonly registry: PodRegistry;
  readonly orphans: OrphanedPods;
  readonly wanted: WantedPods;
  /** The runtime has said what it has. */
  readonly isRuntimeKnown: () => boolean;
  readonly log: Logger;
  /** Every source has spoken, and no pod that runs here waits to be taken over any more. */
  readonly onPodsKnown: () => void;
}

/** Hands what the sources want to the registry, in order, and has pods stopped that nobody wants. */
export class PodIntake {
  readonly #ports: IntakePorts;
  #wereKnown = false;

  constructor(ports: IntakePorts) {
    this.#ports = ports;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { changes, registry, orphans, log } = this.#ports;
    for (;;) {
      const change = await changes.next(signal);
      const wasReady = changes.isReady(change.source);
      registry.apply(change);
      changes.acknowledge(change);
      this.#noteKnown();
      if (wasReady || !changes.isReady(change.source)) continue;
      if (changes.allReady()) {
        log.info("All pod sources have sent their pods; pods that are in none of them may be stopped from now on");
      }
      orphans.stopAll();
    }
  }

  /** Something that decisions rest on has become known: what runs, the Node, or what the runtime can do. */
  reconsider(): void {
    this.#ports.registry.reconsider();
    this.#noteKnown();
  }

  #noteKnown(): void {
    const { changes, wanted, isRuntimeKnown, onPodsKnown } = this.#ports;
    const areKnown = arePodsKnown(changes, wanted, isRuntimeKnown());
    if (areKnown && !this.#wereKnown) onPodsKnown();
    this.#wereKnown = areKnown;
  }
}

/** Whether every source has spoken, and no pod that runs here waits to be taken over. */
export function arePodsKnown(sources: { allReady(): boolean }, wanted: WantedPods, isRuntimeKnown: boolean): boolean {
  return sources.allReady() && isRuntimeKnown && !wanted.isTakingOver();
}
