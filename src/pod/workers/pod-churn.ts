import type { StartSlots } from "./start-slots.ts";

/** How much the node has to do for pods that start and stop: what else there is to do may wait for that. */
export class PodChurn {
  readonly slots: StartSlots;
  #stops = 0;

  constructor(slots: StartSlots) {
    this.slots = slots;
  }

  /** "crowded": more pods are to start than can at once. */
  get level(): "calm" | "busy" | "crowded" {
    if (this.slots.isCrowded) return "crowded";
    return this.slots.isTaken || this.#stops > 0 ? "busy" : "calm";
  }

  async stopping<Result>(stop: () => Promise<Result>): Promise<Result> {
    this.#stops++;
    try {
      return await stop();
    } finally {
      this.#stops--;
    }
  }
}
