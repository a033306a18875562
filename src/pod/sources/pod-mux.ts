import { type Clock, Limiter } from "../../ground/base/index.ts";
import {
  describePod,
  type IdentifiedPod,
  type PodChange,
  type PodSource,
  type PodUid,
  type Provisional,
  type RecordPodEvent,
  uidOf,
} from "../../ground/model/index.ts";
import { BoundedQueue } from "./bounded-queue.ts";
import type { NotificationMode, NotificationOf, PodNotification } from "./notifications.ts";
import { type Merge, type SourceChange, SourceDiff } from "./source-diff.ts";

const notificationBuffer = 50;

export interface PodMuxSettings<Mode extends NotificationMode> {
  readonly mode: Mode;
  /** Every source that must have spoken before anything may be cleaned up. */
  readonly sources: readonly PodSource[];
}

export interface PodMuxPorts {
  readonly clock: Clock;
  readonly recordEvent: RecordPodEvent;
}

/**
 * Merges what the sources want into one ordered stream. Sources hand in their complete list with `set`, and those that
 * know more say from then on what became of single pods with `change`; one consumer takes notifications with `next` and
 * calls `acknowledge` when it has acted on one. The buffer is bounded: sources wait while the consumer is behind.
 */
export class PodMux<Mode extends NotificationMode = "incremental"> {
  readonly #settings: PodMuxSettings<Mode>;
  readonly #ports: PodMuxPorts;
  readonly #queue = new BoundedQueue<PodNotification>(notificationBuffer);
  // Merges are serialised across sources, so that the stream has one order.
  readonly #merging = new Limiter(1);
  readonly #known = new Map<PodSource, SourceDiff>();
  /** Sources that have delivered a list they stand by. */
  readonly #confirmed = new Set<PodSource>();
  readonly #acknowledged = new Set<PodSource>();
  readonly #duplicates = new Map<PodSource, ReadonlySet<PodUid>>();

  constructor(settings: PodMuxSettings<Mode>, ports: PodMuxPorts) {
    this.#settings = settings;
    this.#ports = ports;
  }

  /**
   * The complete list of pods that `source` wants now; provisional: wanted last, as far as is known. Resolves when
   * every resulting notification is in the buffer.
   */
  async set(
    source: PodSource,
    pods: readonly IdentifiedPod[],
    signal: AbortSignal,
    provisional?: Provisional,
  ): Promise<void> {
    await this.#merging.run(async () => {
      if (provisional !== undefined && this.#confirmed.has(source)) return;
      const isFirst = !this.#confirmed.has(source);
      const known = this.#known.get(source) ?? new SourceDiff(source);
      this.#known.set(source, known);
      const { merge, duplicates } = known.replace(pods, this.#timestamp());
      if (provisional === undefined) this.#confirmed.add(source);
      this.#announceDuplicates(source, duplicates);
      const news = isFirst ? allAdded(merge, known) : merge;
      for (const notification of this.#notifications(source, news, isFirst)) {
        await this.#queue.put(provisional === undefined ? notification : { ...notification, provisional }, signal);
      }
    }, signal);
  }

  /** What became of one pod since `source` handed in a list that it stands by. */
  async change(source: PodSource, change: SourceChange, signal: AbortSignal): Promise<void> {
    await this.#merging.run(async () => {
      const known = this.#known.get(source);
      if (known === undefined || !this.#confirmed.has(source)) {
        throw new Error(`the pod source ${source} sent a change before its first list`);
      }
      const merge = known.change(change, this.#timestamp());
      for (const notification of this.#notifications(source, merge, false)) await this.#queue.put(notification, signal);
    }, signal);
  }

  /** The next notification, in order. */
  async next(signal: AbortSignal): Promise<NotificationOf<Mode>> {
    return (await this.#queue.take(signal)) as NotificationOf<Mode>;
  }

  /** The consumer has acted on this notification; its source counts as ready from now on, if it stands by it. */
  acknowledge(notification: PodNotification): void {
    if (notification.provisional === undefined) this.#acknowledged.add(notification.source);
  }

  /** True once this source has delivered a list that it stands by and that the consumer has acted on. */
  isReady(source: PodSource): boolean {
    return this.#acknowledged.has(source);
  }

  /**
   * True once every source has spoken that could want a pod of this origin: a pod from a manifest can be wanted by the
   * source of its manifests alone, whatever the others have yet to say.
   */
  allReadyFor(origin: string | undefined): boolean {
    return this.allReady() || ((origin === "file" || origin === "http") && this.isReady(origin));
  }

  /** True once every configured source has delivered a list that the consumer has acted on. */
  allReady(): boolean {
    return this.#settings.sources.every((source) => this.#acknowledged.has(source));
  }

  /** Configured sources that `allReady` still waits for; for messages. */
  awaited(): readonly PodSource[] {
    return this.#settings.sources.filter((source) => !this.#acknowledged.has(source));
  }

  /** The pod as the consumer would know it if `source` wanted it now and had not before. */
  foresee(source: PodSource, pod: IdentifiedPod): IdentifiedPod {
    return new SourceDiff(source).replace([pod], this.#timestamp()).merge.adds[0] ?? pod;
  }

  /** Every desired pod of every source. */
  pods(): readonly IdentifiedPod[] {
    return [...this.#known.values()].flatMap((known) => known.all());
  }

  #notifications(source: PodSource, merge: Merge, isFirst: boolean): readonly PodNotification[] {
    const { removes, adds, updates, deletes, reconciles } = merge;
    const change = (op: PodChange["op"], pods: readonly IdentifiedPod[]): readonly PodChange[] =>
      pods.length > 0 ? [{ op, source, pods }] : [];
    switch (this.#settings.mode as NotificationMode) {
      case "incremental": {
        const changes = [
          ...change("REMOVE", removes),
          ...change("ADD", adds),
          ...change("UPDATE", updates),
          ...change("DELETE", deletes),
        ];
        const silentFirst = isFirst && adds.length + updates.length + deletes.length === 0;
        if (silentFirst) changes.push({ op: "ADD", source, pods: [] });
        return [...changes, ...change("RECONCILE", reconciles)];
      }
      case "snapshot-and-updates": {
        const comeOrGone = isFirst || removes.length + adds.length > 0;
        const snapshot: readonly PodNotification[] = comeOrGone ? [{ op: "SET", source, pods: this.pods() }] : [];
        return [...snapshot, ...change("UPDATE", updates), ...change("DELETE", deletes)];
      }
      case "snapshot": {
        const changed = isFirst || removes.length + adds.length + updates.length + deletes.length > 0;
        return changed ? [{ op: "SET", source, pods: this.pods() }] : [];
      }
    }
  }

  /** Once per duplicate, not again with every SET that still holds it. */
  #announceDuplicates(source: PodSource, duplicates: readonly IdentifiedPod[]): void {
    const announced = this.#duplicates.get(source);
    for (const pod of duplicates) {
      if (announced?.has(uidOf(pod))) continue;
      this.#ports.recordEvent(pod, {
        type: "Warning",
        reason: "FailedValidation",
        message: `Error validating pod ${describePod(pod)} from ${source} due to duplicate pod name "${pod.metadata.name}", ignoring`,
      });
    }
    this.#duplicates.set(source, new Set(duplicates.map(uidOf)));
  }

  /** RFC 3339 with nine digits, as other agents write it. */
  #timestamp(): string {
    return new Date(this.#ports.clock.now()).toISOString().replace("Z", "000000Z");
  }
}

/** What was only assumed so far is now said: nobody has to remember what differs from the assumption. */
function allAdded({ removes }: Merge, known: SourceDiff): Merge {
  return { removes, adds: known.all(), updates: [], deletes: [], reconciles: [] };
}
