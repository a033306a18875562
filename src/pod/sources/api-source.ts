import { type Clock, isAbort, isShortage, type Logger, messageOf, Pause } from "../../ground/base/index.ts";
import { type IdentifiedPod, type PodUid, uidOf } from "../../ground/model/index.ts";
import { isSameWish, type OfflineFile } from "./offline-file.ts";
import { type OfflineList, offlineHolds } from "./offline-rules.ts";
import type { PodMux } from "./pod-mux.ts";
import type { SourceChange } from "./source-diff.ts";
import type { StartedPod } from "./started-pod.ts";

/** How long the API may take to say which pods it wants before the last known ones are looked at. */
const patienceMs = 10_000;
/** How often the runtime is asked again what it has, when it could not say; and the list is read that could not be read. */
const retryMs = 10_000;

/** What happened to a pod of the API; `object` of a deletion is how it was last. */
export type ApiPodChange =
  | { readonly type: "added"; readonly object: IdentifiedPod }
  | { readonly type: "updated"; readonly old: IdentifiedPod; readonly object: IdentifiedPod }
  | { readonly type: "deleted"; readonly object: IdentifiedPod };

/**
 * Pods that the API has bound to this node: the whole list each time the API was listed, else each change as it comes.
 * A start of the agent without the API goes on with what the API wanted last, as far as that is safe
 * (offline-rules.ts); such a list is provisional, and the API's own takes its place.
 */
export class ApiSource {
  readonly #ports: ApiSourcePorts;
  readonly #pause: Pause;
  /** The whole list has to be handed on; it holds every change there was. */
  #isListDue = true;
  #hasHandedOnList = false;
  /** What has yet to be handed on since the last list: the newest of each pod, so never more than there are pods. */
  readonly #changes = new Map<PodUid, SourceChange>();

  constructor(ports: ApiSourcePorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** The API's pods have all been listed. */
  readonly listed = (): void => {
    this.#isListDue = true;
    this.#changes.clear();
    this.#pause.cutShort();
  };

  readonly changed = (change: ApiPodChange): void => {
    const { object: pod } = change;
    const isWish = change.type !== "updated" || !isSameWish(change.old, pod);
    if (this.#hasHandedOnList && isWish) this.#ports.offline.changed();
    if (this.#isListDue) return;
    const uid = uidOf(pod);
    this.#changes.set(uid, change.type === "deleted" ? { type: "gone", uid } : { type: "put", pod });
    this.#pause.cutShort();
  };

  async run(signal: AbortSignal): Promise<void> {
    await this.#assume(signal);
    while (!signal.aborted) {
      const [next] = this.#changes;
      if (this.#isListDue && this.#ports.hasSynced()) await this.#handOnList(signal);
      else if (next !== undefined) {
        const [uid, change] = next;
        this.#changes.delete(uid);
        await this.#ports.wanted.change("api", change, signal);
      } else await this.#pause.wait(forever, signal);
    }
  }

  async #handOnList(signal: AbortSignal): Promise<void> {
    this.#isListDue = false;
    await this.#ports.wanted.set("api", this.#ports.pods(), signal);
    // Each change since has told the file of itself.
    if (!this.#hasHandedOnList) this.#ports.offline.changed();
    this.#hasHandedOnList = true;
  }

  /** Without an answer in time: hands on what was wanted last. */
  async #assume(signal: AbortSignal): Promise<void> {
    const { clock, log, hasSynced } = this.#ports;
    const until = clock.monotonic() + patienceMs;
    while (!hasSynced() && clock.monotonic() < until) await this.#pause.wait(until - clock.monotonic(), signal);
    if (hasSynced()) return;
    const list = await this.#lastKnown(signal);
    if (list === undefined) return;
    const started = await this.#startedPods(signal);
    if (started === undefined || hasSynced()) return;
    const nodeUid = await this.#ports.nodeUid(signal);
    if (hasSynced()) return;
    const holds = offlineHolds(list, started, { nowMs: clock.now(), nodeUid });
    log.warn("The API server does not answer; continuing with the last known pods", {
      pods: list.pods.length,
      held: holds.size,
    });
    await this.#ports.wanted.set("api", list.pods, signal, { hold: (uid) => holds.get(uid) });
  }

  /** Undefined: there is none that is of any use, or the API has answered meanwhile. */
  async #lastKnown(signal: AbortSignal): Promise<OfflineList | undefined> {
    while (!this.#ports.hasSynced()) {
      try {
        return await this.#ports.offline.load();
      } catch (error) {
        if (!isShortage(error)) throw error;
        this.#ports.log.warn("Cannot read the last known pods now; trying again", { err: messageOf(error) });
        await this.#pause.wait(retryMs, signal);
      }
    }
    return undefined;
  }

  /** Undefined: the API has answered meanwhile. */
  async #startedPods(signal: AbortSignal): Promise<readonly StartedPod[] | undefined> {
    while (!this.#ports.hasSynced()) {
      try {
        return await this.#ports.startedPods(signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        this.#ports.log.warn("Cannot list running pods; trying again", { err: messageOf(error) });
        await this.#pause.wait(retryMs, signal);
      }
    }
    return undefined;
  }
}

export interface ApiSourcePorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly offline: Pick<OfflineFile, "changed" | "load">;
  readonly hasSynced: () => boolean;
  readonly pods: () => readonly IdentifiedPod[];
  readonly startedPods: (signal: AbortSignal) => Promise<readonly StartedPod[]>;
  /** The uid of the Node that is or was known last; waits until that is clear. */
  readonly nodeUid: (signal: AbortSignal) => Promise<string | undefined>;
  /** The one stream of what all sources want. */
  readonly wanted: Pick<PodMux, "set" | "change">;
}

const forever = 2 ** 31 - 1;
