import { type Clock, type Logger, messageOf, Pause, type TaskScope } from "../../../ground/base/index.ts";
import type { PodUid } from "../../../ground/model/index.ts";
import type { ClaimManager } from "./claim-manager.ts";

export interface ClaimSweepPorts {
  readonly scope: TaskScope;
  readonly clock: Clock;
  readonly log: Logger;
  readonly manager: Pick<ClaimManager, "pods" | "release">;
  /** Whether anything of the pod may use its claims, or will. */
  readonly holds: (uid: PodUid) => boolean;
}

const sweepMs = 60_000;

/** Gives back what pods left that are gone: deleted by force, or while no agent ran. */
export class ClaimSweep {
  readonly #ports: ClaimSweepPorts;
  readonly #pause: Pause;
  #arePodsKnown = false;
  /** What was said of whom: a driver may be away for days. */
  #said = new Map<PodUid, string>();

  constructor(ports: ClaimSweepPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** Every source has spoken: what nobody holds is nobody's, now and from now on. */
  podsKnown(): void {
    this.#arePodsKnown = true;
    this.soon();
  }

  soon(): void {
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#arePodsKnown) this.#sweep();
      await this.#pause.wait(sweepMs, signal);
    }
  }

  /** Waits for nobody: a driver that hangs must not keep others from getting theirs back. */
  #sweep(): void {
    const { scope, manager, holds, log } = this.#ports;
    const pods = manager.pods();
    this.#said = new Map([...this.#said].filter(([uid]) => pods.has(uid)));
    for (const uid of pods) {
      if (holds(uid)) continue;
      scope.spawn("claims of a pod that is gone", async (signal) => {
        try {
          await manager.release(uid, signal);
        } catch (error) {
          if (signal.aborted) return;
          const err = messageOf(error);
          if (this.#said.get(uid) === err) return;
          this.#said.set(uid, err);
          log.warn("Claims of a pod that is gone could not be given back; trying again", { uid, err });
        }
      });
    }
  }
}
