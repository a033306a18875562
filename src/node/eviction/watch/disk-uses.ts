import {
  aFewAtOnce,
  type Clock,
  isAbort,
  type Logger,
  mapAtMost,
  messageOf,
  unlessAborted,
  withDeadline,
} from "../../../ground/base/index.ts";
import { describePod, type IdentifiedPod, type PodUid, uidOf } from "../../../ground/model/index.ts";
import { type ContainerUse, type DiskUse, nothingHeld } from "../plan/usage.ts";

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

/** Walking through millions of files, or a disk that does not answer: what is not known by then stays so. */
const podWithinMs = 2_000;
/** All together: measuring must not keep the node from freeing its disk. */
const allWithinMs = 10_000;

const nothing: MeasuredDiskUse = {
  disk: { layers: nothingHeld, logs: nothingHeld, ownVolumes: nothingHeld, hostVolumes: nothingHeld },
  containers: [],
};

/** What pods have on the node's disks, measured only when some pod has to go for its sake. */
export class DiskUses {
  readonly #ports: DiskUsesPorts;
  #uses = new Map<PodUid, MeasuredDiskUse>();
  #measuredAt: number | undefined;
  #isUnderWay = false;
  /** Pods whose measurement was given up on, and has not ended yet. */
  readonly #hanging = new Set<PodUid>();

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

  /** One pod that can't be measured does not hide the others, and whoever was not come to is not taken for one. */
  async measure(pods: readonly IdentifiedPod[], signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const endsAt = clock.monotonic() + allWithinMs;
    const uses = new Map<PodUid, MeasuredDiskUse>();
    this.#isUnderWay = true;
    try {
      await mapAtMost(aFewAtOnce, pods, async (pod) => {
        const uid = uidOf(pod);
        const isLate = clock.monotonic() >= endsAt;
        const use = isLate ? (this.#uses.get(uid) ?? nothing) : await this.#measureInTime(pod, signal);
        if (use !== undefined) uses.set(uid, use);
      });
    } finally {
      this.#uses = uses;
      this.#measuredAt = clock.monotonic();
      this.#isUnderWay = false;
    }
  }

  async #measureInTime(pod: IdentifiedPod, signal: AbortSignal): Promise<MeasuredDiskUse | undefined> {
    const { clock, log, measure } = this.#ports;
    const uid = uidOf(pod);
    if (this.#hanging.has(uid)) return undefined;
    this.#hanging.add(uid);
    const late = (): Error => new Error(`it took longer than ${podWithinMs / 1000} s`);
    try {
      return await withDeadline(clock, podWithinMs, late, signal, (bounded) => {
        const measuring = measure(pod, bounded).finally(() => this.#hanging.delete(uid));
        return unlessAborted(measuring, bounded);
      });
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.warn("Could not measure what a pod has on disk", { pod: describePod(pod), reason: messageOf(error) });
      return undefined;
    }
  }
}
