import { type Clock, isAbort, type Logger, messageOf, TaskScope } from "../../ground/base/index.ts";
import { describePod, type IdentifiedPod } from "../../ground/model/index.ts";
import {
  type PodDisk,
  type StorageExcess,
  type StorageLimits,
  storageExcess,
  storageLimitsOf,
} from "./storage-limits.ts";

export type { PodDisk } from "./storage-limits.ts";

export interface StorageWatchPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Pods that run or are being started. */
  readonly activePods: () => readonly IdentifiedPod[];
  /** Pods that the node can't do without. */
  readonly isExempt: (pod: IdentifiedPod) => boolean;
  /** Measures what the limits are about; may take long. */
  readonly measure: (pod: IdentifiedPod, limits: StorageLimits, signal: AbortSignal) => Promise<PodDisk>;
  readonly layers: (signal: AbortSignal) => Promise<"on the node's disk" | "on a disk of their own">;
  /** Ends the pod for good. */
  readonly evict: (pod: IdentifiedPod, excess: StorageExcess) => void;
}

const everyMs = 10_000;
// Pods are looked at one after the other, which spares the machine. One that takes longer than this goes on by itself:
// a pod with millions of files, or on a disk that does not answer, must not keep the others from being looked at.
const patienceMs = 1_000;

/**
 * Evicts pods that hold more on the node's disk, or in a scratch volume, than they may. Pods without such a limit cost
 * nothing, and pods that the node can't do without are left alone.
 */
export class StorageWatch {
  readonly #ports: StorageWatchPorts;
  /** Pods whose last look has not ended yet. */
  readonly #looking = new Set<string>();

  constructor(ports: StorageWatchPorts) {
    this.#ports = ports;
  }

  async run(signal: AbortSignal): Promise<void> {
    await using scope = new TaskScope(signal);
    for (;;) {
      await this.#look(scope, signal);
      await this.#ports.clock.sleep(everyMs, signal);
    }
  }

  /** One look at every pod with a limit. */
  async #look(scope: TaskScope, signal: AbortSignal): Promise<void> {
    const { activePods, isExempt, clock } = this.#ports;
    for (const pod of activePods()) {
      const limits = storageLimitsOf(pod);
      const { uid } = pod.metadata;
      if ((!limits.ofVolumes && !limits.ofDisk) || isExempt(pod) || this.#looking.has(uid)) continue;
      this.#looking.add(uid);
      const enough = new AbortController();
      scope.spawn(`storage of ${describePod(pod)}`, async (stopped) => {
        try {
          await this.#checkOrTell(pod, limits, stopped);
        } finally {
          this.#looking.delete(uid);
          enough.abort();
        }
      });
      await clock.sleep(patienceMs, enough.signal).catch(() => {});
      signal.throwIfAborted();
    }
  }

  async #checkOrTell(pod: IdentifiedPod, limits: StorageLimits, signal: AbortSignal): Promise<void> {
    try {
      await this.#check(pod, limits, signal);
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#ports.log.warn("Could not measure the disk usage of a pod", {
        pod: describePod(pod),
        reason: messageOf(error),
      });
    }
  }

  async #check(pod: IdentifiedPod, limits: StorageLimits, signal: AbortSignal): Promise<void> {
    const { measure, layers, evict, log, activePods } = this.#ports;
    const excess = storageExcess(pod, await measure(pod, limits, signal), await layers(signal));
    if (excess === undefined) return;
    // Measuring takes its time: one that has ended meanwhile, or is to end for another reason, ended for that.
    if (!activePods().some(({ metadata: { uid } }) => uid === pod.metadata.uid)) return;
    log.info("Evicting a pod that uses more disk than its limit allows", {
      pod: describePod(pod),
      reason: excess.message.trim(),
    });
    evict(pod, excess);
  }
}
