import { type Clock, cutText } from "../../../ground/base/index.ts";
import type { IdentifiedPod, PodEvent } from "../../../ground/model/index.ts";

/** An event as people are shown it. */
export interface RecentEvent {
  readonly at: number;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  /** What it is about, in words. */
  readonly about: string;
  /** Of the pod; empty: it is about the node. */
  readonly uid: string;
  readonly times: number;
}

const mostKept = 200;
/** Shorter than in the event itself: these stay in memory whether or not anybody ever looks. */
const longestMessageBytes = 400;

/** The last events of this node, the same one once with a count. */
export class RecentEvents {
  readonly #clock: Clock;
  /** In the order of their last occurrence. */
  readonly #events = new Map<string, RecentEvent>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(pod: IdentifiedPod | undefined, { type, reason, message: said }: PodEvent, nodeName: string): void {
    const { namespace, name, uid = "" } = pod?.metadata ?? {};
    const message = cutText(said, longestMessageBytes);
    const key = JSON.stringify([uid, type, reason, message]);
    const times = (this.#events.get(key)?.times ?? 0) + 1;
    this.#events.delete(key);
    const about = pod === undefined ? nodeName : `${namespace}/${name}`;
    this.#events.set(key, { at: this.#clock.now(), type, reason, message, about, uid, times });
    const [oldest] = this.#events.keys();
    if (this.#events.size > mostKept && oldest !== undefined) this.#events.delete(oldest);
  }

  /** The latest last. */
  all(): readonly RecentEvent[] {
    return [...this.#events.values()];
  }
}
