import { type Clock, isAbort, type Logger, messageOf } from "../base/index.ts";
import { describePod, type IdentifiedPod, isCriticalPod } from "../model/index.ts";
import {
  type PodDisk,
  type StorageExcess,
  type StorageLimits,
  storageExcess,
  storageLimitsOf,
} from "./storage-limits.ts";

export type { ContainerDisk, PodDisk } from "./storage-limits.ts";

export interface StorageWatchPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Pods that run or are being started. */
  readonly activePods: () => readonly IdentifiedPod[];
  /** Measures what the limits are about; may take long. */
  readonly measure: (pod: IdentifiedPod, limits: StorageLimits, signal: AbortSignal) => Promise<PodDisk>;
  readonly layers: (signal: AbortSignal) => Promise<"on the node's disk" | "on a disk of their own">;
  /** Ends the pod for good. */
  readonly evict: (pod: IdentifiedPod, excess: StorageExcess) => void;
}

const everyMs = 10_000;
/** Counting files is work of the machine's; it may take no more than this share of the time. */
const restPerWork = 20;

/**
 * Evicts pods that hold more on the node's disk, or in a scratch volume, than they may. Pods without such a limit cost
 * nothing, and pods that the node can't do without are left alone.
 */
export class StorageWatch {
  readonly #ports: StorageWatchPorts;

  constructor(ports: StorageWatchPorts) {
    this.#ports = ports;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    for (;;) {
      const start = clock.monotonic();
      await this.look(signal);
      await clock.sleep(Math.max(everyMs, (clock.monotonic() - start) * restPerWork), signal);
    }
  }

  /** One look at every pod with a limit. */
  async look(signal: AbortSignal): Promise<void> {
    for (const pod of this.#ports.activePods()) {
      const limits = storageLimitsOf(pod);
      if ((!limits.ofVolumes && !limits.ofDisk) || isCriticalPod(pod)) continue;
      try {
        await this.#check(pod, limits, signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        this.#ports.log.warn("Could not measure what a pod keeps on this node", {
          pod: describePod(pod),
          reason: messageOf(error),
        });
      }
    }
  }

  async #check(pod: IdentifiedPod, limits: StorageLimits, signal: AbortSignal): Promise<void> {
    const { measure, layers, evict, log } = this.#ports;
    const excess = storageExcess(pod, await measure(pod, limits, signal), await layers(signal));
    if (excess === undefined) return;
    log.info("Evicting a pod that takes more of the disk than it may", {
      pod: describePod(pod),
      reason: excess.message.trim(),
    });
    evict(pod, excess);
  }
}
