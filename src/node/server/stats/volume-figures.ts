import {
  type Clock,
  isAbort,
  KeyedWorkers,
  Limiter,
  mapAtMost,
  type TaskScope,
  waitFor,
} from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { StatsPorts, VolumeReading } from "./ports.ts";

export interface PodVolumeFigures {
  /** When they were measured, in milliseconds since 1970. */
  readonly at: number;
  readonly volumes: readonly VolumeReading[];
}

export type VolumeFiguresPorts = Pick<StatsPorts, "measureVolumes" | "random"> & {
  readonly clock: Clock;
  readonly periodMs: number;
};

const patienceMs = 1_000;
const podsAtOnce = 4;
const none: PodVolumeFigures = { at: 0, volumes: [] };

/** Pods of which nothing is known yet and that are waited for at once; each wait has its limit. */
const waitsAtOnce = 64;

/**
 * Measures the volumes of pods when somebody wants to know, at most once per period. A large volume takes long to
 * count, so an old figure is given while the new one is on its way, and none when there is no old one.
 */
export class VolumeFigures {
  readonly #ports: VolumeFiguresPorts;
  readonly #known = new Map<PodUid, PodVolumeFigures & { readonly dueAt: number }>();
  readonly #waiting = new Map<PodUid, Set<() => void>>();
  readonly #workers: KeyedWorkers<PodUid>;
  readonly #slots = new Limiter(podsAtOnce);

  constructor(scope: TaskScope, ports: VolumeFiguresPorts) {
    this.#ports = ports;
    this.#workers = new KeyedWorkers(scope, (uid, signal) => this.#slots.run(() => this.#measure(uid, signal), signal));
  }

  async ofAll(uids: readonly PodUid[], signal: AbortSignal): Promise<ReadonlyMap<PodUid, PodVolumeFigures>> {
    if (this.#ports.periodMs <= 0) return new Map();
    const wanted = new Set(uids);
    for (const uid of this.#known.keys()) if (!wanted.has(uid)) this.#known.delete(uid);
    const all = await mapAtMost(waitsAtOnce, uids, async (uid) => [uid, await this.#of(uid, signal)] as const);
    return new Map(all);
  }

  async #of(uid: PodUid, signal: AbortSignal): Promise<PodVolumeFigures> {
    const known = this.#known.get(uid);
    if (known === undefined || this.#ports.clock.monotonic() >= known.dueAt) {
      this.#workers.wake(uid);
      if (known === undefined) await this.#measured(uid, signal);
    }
    return this.#known.get(uid) ?? none;
  }

  /** Resolves when the pod has been measured, or when that takes too long. */
  async #measured(uid: PodUid, signal: AbortSignal): Promise<void> {
    await waitFor(signal, (done) => {
      const waiting = this.#waiting.get(uid) ?? new Set();
      this.#waiting.set(uid, waiting);
      waiting.add(done);
      const timer = this.#ports.clock.after(patienceMs, done);
      return () => {
        timer.cancel();
        waiting.delete(done);
      };
    });
  }

  async #measure(uid: PodUid, signal: AbortSignal): Promise<void> {
    const { clock, measureVolumes, periodMs, random } = this.#ports;
    let volumes = this.#known.get(uid)?.volumes ?? [];
    try {
      volumes = await measureVolumes(uid, signal);
    } catch (error) {
      // A figure that can't be had is no reason to end the agent; the old one stands until the next round.
      if (isAbort(error, signal)) throw error;
    }
    // Not all pods in the same moment the next time either.
    this.#known.set(uid, { at: clock.now(), volumes, dueAt: clock.monotonic() + periodMs * (1 + random()) });
    for (const end of [...(this.#waiting.get(uid) ?? [])]) end();
    this.#waiting.delete(uid);
  }
}
