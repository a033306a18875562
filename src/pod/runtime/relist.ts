import type { RuntimeService } from "../../connections/cri/index.ts";
import { type Clock, isAbort, type Logger, Pause } from "../../ground/base/index.ts";
import { listedState, type ObservedPod, type PodUid } from "../../ground/model/index.ts";
import { runtimeLabels } from "./mapping/index.ts";
import { translateContainerState, translateSandboxState } from "./translate.ts";

/**
 * Heals lost events of the runtime: compares everything the runtime has with what the observer remembers, and wakes the pods that
 * differ. Runs seconds apart after a start or trouble, minutes apart when nothing was found amiss for a while.
 */
export class Relist {
  readonly #ports: RelistPorts;
  #intervalMs: number = soonMs;
  readonly #pause: Pause;
  #lastSuccessAt: number | undefined;

  constructor(ports: RelistPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** When the runtime last answered a full list; undefined before the first. */
  get lastSuccessAt(): number | undefined {
    return this.#lastSuccessAt;
  }

  /** Something may have been missed: look again soon, and more often for a while. */
  hasten(): void {
    this.#intervalMs = soonMs;
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const found = await this.#relist(signal);
      const limitMs = this.#ports.eventsFlow() ? idleMs : blindMs;
      this.#intervalMs = found === "calm" ? Math.min(this.#intervalMs * 2, limitMs) : Math.min(soonMs, limitMs);
      await this.#pause.wait(Math.min(this.#intervalMs, limitMs), signal);
    }
  }

  async #relist(signal: AbortSignal): Promise<"calm" | "changes" | "failed"> {
    const { runtime, log, observedPods, wake, clock } = this.#ports;
    const startedAt = clock.now();
    const begunAt = clock.monotonic();
    try {
      const [{ items }, { containers }] = await Promise.all([
        runtime.listPodSandbox({ filter: undefined }, { signal }),
        runtime.listContainers({ filter: undefined }, { signal }),
      ]);
      const names = new Map<PodUid, string>();
      const states = new Map<PodUid, Map<string, string>>();
      const statesOf = (uid: string): Map<string, string> => {
        const key = uid as PodUid;
        let known = states.get(key);
        if (known === undefined) {
          known = new Map();
          states.set(key, known);
        }
        return known;
      };
      for (const { id, state, metadata } of items) {
        if (metadata === undefined) continue;
        statesOf(metadata.uid).set(id, translateSandboxState(state));
        names.set(metadata.uid as PodUid, `${metadata.name}_${metadata.namespace}`);
      }
      for (const { id, state, labels } of containers) {
        const uid = labels[runtimeLabels.podUid];
        if (uid !== undefined) statesOf(uid).set(id, translateContainerState(state));
      }
      let changes = 0;
      for (const observed of observedPods()) {
        const present = states.get(observed.uid) ?? new Map<string, string>();
        states.delete(observed.uid);
        // A pod inspected after this list began is fresher than the list.
        if (observed.observedAt >= begunAt || sameStates(observed, present)) continue;
        changes++;
        wake(observed.uid, names.get(observed.uid));
      }
      for (const uid of states.keys()) {
        changes++;
        wake(uid, names.get(uid));
      }
      const isFirst = this.#lastSuccessAt === undefined;
      this.#lastSuccessAt = startedAt;
      this.#ports.onListed(isFirst);
      this.#ports.onDone?.({ at: startedAt, durationMs: clock.monotonic() - begunAt });
      return changes === 0 ? "calm" : "changes";
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      log.warn("Could not list the runtime's pods; trying again", { err: error });
      return "failed";
    }
  }
}

export interface RelistPorts {
  readonly runtime: RuntimeService;
  readonly clock: Clock;
  readonly log: Logger;
  readonly observedPods: () => Iterable<ObservedPod>;
  /** `fullName` as the pod's sandbox has it; undefined when it has none. */
  readonly wake: (uid: PodUid, fullName: string | undefined) => void;
  /** Whether a stream of hints is connected; without one the list is all we have. */
  readonly eventsFlow: () => boolean;
  /** After every successful list: time to decide about what nobody claimed. */
  readonly onListed: (isFirst: boolean) => void;
  /** For metrics. */
  readonly onDone?: (relist: { readonly at: number; readonly durationMs: number }) => void;
}

const soonMs = 2_000;
const blindMs = 1_000;
const idleMs = 300_000;

function sameStates(observed: ObservedPod, present: ReadonlyMap<string, string>): boolean {
  const containers = observed.containers.map((container) => ({ id: container.id, state: listedState(container) }));
  const remembered = [...observed.sandboxes, ...containers];
  return remembered.length === present.size && remembered.every(({ id, state }) => present.get(id) === state);
}
