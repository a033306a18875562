import {
  aFewAtOnce,
  type Clock,
  isAbort,
  LinkedSignal,
  type Logger,
  mapAtMost,
  messageOf,
  unlessAborted,
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
/**
 * But not on a machine on which all take long: whoever can't be measured goes first, and there it would be anybody. One
 * that takes several times as long as the quickest is at fault itself.
 */
const timesTheQuickest = 4;
const longestPodMs = 8_000;
const lookAgainMs = 250;
/** All together: measuring must not keep the node from freeing its disk. */
const allWithinMs = 10_000;

const nothing: MeasuredDiskUse = {
  disk: { layers: nothingHeld, logs: nothingHeld, ownVolumes: nothingHeld, hostVolumes: nothingHeld },
  containers: [],
};

/** What pods have on the node's disks, measured only when some pod has to go for its sake. */
export class DiskUses {
  readonly #ports: DiskUsesPorts;
  /** Of every pod that was asked for; undefined: it could not be measured. */
  #uses: ReadonlyMap<PodUid, MeasuredDiskUse | undefined> = new Map();
  #measuredAt: number | undefined;
  #measuring: Promise<void> | undefined;
  /** Pods whose measurement was given up on, and has not ended yet. */
  readonly #hanging = new Set<PodUid>();
  /** How long the quickest took this time; undefined: nobody is measured yet. */
  #quickestMs: number | undefined;

  constructor(ports: DiskUsesPorts) {
    this.#ports = ports;
  }

  /** undefined: nobody knows. A pod that came after the others were measured has had no time to fill a disk. */
  of(uid: PodUid): MeasuredDiskUse | undefined {
    return this.#measuredAt === undefined || this.#uses.has(uid) ? this.#uses.get(uid) : nothing;
  }

  get isUnderWay(): boolean {
    return this.#measuring !== undefined;
  }

  /** Whether what is known was measured after that moment. */
  areNewerThan(moment: number): boolean {
    return this.#measuredAt !== undefined && this.#measuredAt > moment;
  }

  /**
   * One pod that can't be measured does not hide the others, and whoever was not come to is not taken for one. Who comes
   * while others are at it gets what they find: two at once would find pods that "hang" only because of each other.
   */
  async measure(pods: readonly IdentifiedPod[], signal: AbortSignal): Promise<void> {
    const others = this.#measuring;
    if (others !== undefined) return await unlessAborted(others, signal);
    const measuring = this.#measureAll(pods, signal);
    // Whoever began it hears how it went; for those who came later, what is known by then has to do.
    this.#measuring = measuring.catch(() => {});
    try {
      await measuring;
    } finally {
      this.#measuring = undefined;
    }
  }

  async #measureAll(pods: readonly IdentifiedPod[], signal: AbortSignal): Promise<void> {
    const { clock } = this.#ports;
    const endsAt = clock.monotonic() + allWithinMs;
    this.#quickestMs = undefined;
    const uses = new Map<PodUid, MeasuredDiskUse | undefined>();
    await mapAtMost(aFewAtOnce, pods, async (pod) => {
      const uid = uidOf(pod);
      const isLate = clock.monotonic() >= endsAt;
      uses.set(uid, isLate ? (this.#uses.get(uid) ?? nothing) : await this.#measureInTime(pod, endsAt, signal));
    });
    // Not when it was broken off: those whose turn never came would look like pods that hide something.
    this.#uses = uses;
    this.#measuredAt = clock.monotonic();
  }

  async #measureInTime(pod: IdentifiedPod, endsAt: number, signal: AbortSignal): Promise<MeasuredDiskUse | undefined> {
    const { clock, log, measure } = this.#ports;
    const uid = uidOf(pod);
    if (this.#hanging.has(uid)) return undefined;
    this.#hanging.add(uid);
    const began = clock.monotonic();
    using bounded = new LinkedSignal(signal);
    using _ = this.#patience(began, endsAt, (ms) => bounded.abort(new Error(`it took longer than ${ms / 1000} s`)));
    try {
      const measuring = measure(pod, bounded.signal).finally(() => this.#hanging.delete(uid));
      const measured = await unlessAborted(measuring, bounded.signal);
      this.#quickestMs = Math.min(this.#quickestMs ?? Number.POSITIVE_INFINITY, clock.monotonic() - began);
      return measured;
    } catch (error) {
      if (isAbort(error, signal)) {
        // It was not given up on because it hangs.
        this.#hanging.delete(uid);
        throw error;
      }
      log.warn("Could not measure what a pod has on disk", { pod: describePod(pod), reason: messageOf(error) });
      return undefined;
    }
  }

  /** Tells when it has taken too long, which is seen by how long others take. */
  #patience(began: number, endsAt: number, giveUp: (ms: number) => void): Disposable {
    const { clock } = this.#ports;
    const look = (): void => {
      const most = Math.max(podWithinMs, timesTheQuickest * (this.#quickestMs ?? Number.POSITIVE_INFINITY));
      const leftMs = Math.min(began + Math.min(most, longestPodMs), endsAt) - clock.monotonic();
      if (leftMs <= 0) giveUp(clock.monotonic() - began);
      else timer = clock.after(Math.min(leftMs, lookAgainMs), look);
    };
    let timer = clock.after(podWithinMs, look);
    return { [Symbol.dispose]: () => timer.cancel() };
  }
}
