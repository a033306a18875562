import { type Clock, isAbort, type Logger, messageOf, Pause } from "../../ground/base/index.ts";
import type { IdentifiedPod, Provisional } from "../../ground/model/index.ts";
import type { OfflineFile } from "./offline-file.ts";
import { offlineHolds } from "./offline-rules.ts";
import type { StartedPod } from "./started-pod.ts";

/** How long the API may take to say which pods it wants before the last known ones are looked at. */
const patienceMs = 10_000;
/** How often the runtime is asked again what it has, when it could not say. */
const retryMs = 10_000;

/**
 * Pods that the API has bound to this node. A start of the agent without the API goes on with what the API wanted last,
 * as far as that is safe (offline-rules.ts); such a list is provisional, and the API's own takes its place.
 */
export class ApiSource {
  readonly #ports: ApiSourcePorts;
  readonly #pause: Pause;
  #changed = true;

  constructor(ports: ApiSourcePorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** The API's pods may have changed. */
  wake(): void {
    this.#changed = true;
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#assume(signal);
    while (!signal.aborted) {
      if (this.#ports.hasSynced() && this.#changed) {
        this.#changed = false;
        const pods = this.#ports.pods();
        await this.#ports.deliver(pods, undefined, signal);
        this.#ports.offline.keep(pods);
      } else await this.#pause.wait(forever, signal);
    }
  }

  /** Without an answer in time: hands on what was wanted last. */
  async #assume(signal: AbortSignal): Promise<void> {
    const { clock, log, offline, hasSynced } = this.#ports;
    const until = clock.monotonic() + patienceMs;
    while (!hasSynced() && clock.monotonic() < until) await this.#pause.wait(until - clock.monotonic(), signal);
    if (hasSynced()) return;
    const list = await offline.load();
    if (list === undefined) return;
    const started = await this.#startedPods(signal);
    if (started === undefined || hasSynced()) return;
    const nodeUid = await this.#ports.nodeUid(signal);
    if (hasSynced()) return;
    const holds = offlineHolds(list, started, { nowMs: clock.now(), nodeUid });
    log.warn("The API server does not answer; going on with the pods it wanted last", {
      pods: list.pods.length,
      held: holds.size,
    });
    await this.#ports.deliver(list.pods, { hold: (uid) => holds.get(uid) }, signal);
  }

  /** Undefined: the API has answered meanwhile. */
  async #startedPods(signal: AbortSignal): Promise<readonly StartedPod[] | undefined> {
    while (!this.#ports.hasSynced()) {
      try {
        return await this.#ports.startedPods(signal);
      } catch (error) {
        if (isAbort(error, signal)) throw error;
        this.#ports.log.warn("Cannot list what runs; trying again", { err: messageOf(error) });
        await this.#pause.wait(retryMs, signal);
      }
    }
    return undefined;
  }
}

export interface ApiSourcePorts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly offline: Pick<OfflineFile, "keep" | "load">;
  readonly hasSynced: () => boolean;
  readonly pods: () => readonly IdentifiedPod[];
  readonly startedPods: (signal: AbortSignal) => Promise<readonly StartedPod[]>;
  /** The uid of the Node that is or was known last; waits until that is clear. */
  readonly nodeUid: (signal: AbortSignal) => Promise<string | undefined>;
  readonly deliver: (
    pods: readonly IdentifiedPod[],
    provisional: Provisional | undefined,
    signal: AbortSignal,
  ) => Promise<void>;
}

const forever = 2 ** 31 - 1;
