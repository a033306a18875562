import {
  aFewAtOnce,
  type Clock,
  isAbort,
  type Logger,
  mapAtMost,
  messageOf,
  withDeadline,
} from "../../../ground/base/index.ts";
import { describePod, type IdentifiedPod, type PodUid, uidOf } from "../../../ground/model/index.ts";
import type { ContainerUse, DiskUse } from "../plan/usage.ts";

export interface MeasuredDiskUse {
  readonly disk: DiskUse;
  readonly containers: readonly ContainerUse[];
}

export interface DiskUsesPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** May take long. */
  readonly measure: (pod: IdentifiedPod, signal: AbortSignal) => Promise<MeasuredDiskUse>;
}

/** Walking through millions of files must not keep the node from freeing its disk; what is not known by then stays so. */
const measuredWithinMs = 10_000;

/** What pods have on the node's disks, measured only when some pod has to go for its sake. */
export class DiskUses {
  readonly #ports: DiskUsesPorts;
  #uses = new Map<PodUid, MeasuredDiskUse>();
  #measuredAt: number | undefined;
  #isUnderWay = false;

  constructor(ports: DiskUsesPorts) {
    this.#ports = ports;
  }

  of(uid: PodUid): MeasuredDiskUse | undefined {
    return this.#uses.get(uid);
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** Whether what is known was measured after that moment. */
  areNewerThan(moment: number): boolean {
    return this.#measuredAt !== undefined && this.#measuredAt > moment;
  }

  /** One pod that can't be measured does not hide the others. */
  async measure(pods: readonly IdentifiedPod[], signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#ports;
    const uses = new Map<PodUid, MeasuredDiskUse>();
    this.#isUnderWay = true;
    try {
      const late = (): DOMException => new DOMException("it took too long", "AbortError");
      await withDeadline(clock, measuredWithinMs, late, signal, async (bounded) => {
        await mapAtMost(aFewAtOnce, pods, async (pod) => {
          try {
            uses.set(uidOf(pod), await this.#ports.measure(pod, bounded));
          } catch (error) {
            if (isAbort(error, signal)) throw error;
            log.warn("Could not measure what a pod has on disk", { pod: describePod(pod), reason: messageOf(error) });
          }
        });
      });
    } finally {
      this.#uses = uses;
      this.#measuredAt = clock.monotonic();
      this.#isUnderWay = false;
    }
  }
}
