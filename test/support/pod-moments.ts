import { systemClock, TaskScope } from "../../src/ground/base/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import type { TestAgent } from "./agent.ts";

/** Follows the agent's own stream of pod changes, so that moments are known as they happen and nothing polls. */
export class PodMoments implements AsyncDisposable {
  readonly #scope = new TaskScope();
  readonly #pods = new Map<string, Pod>();
  readonly #waiters = new Set<() => void>();

  constructor(agent: TestAgent) {
    this.#scope.spawn("watch pods", async (signal) => {
      for await (const { type, object } of agent.client.watchPods(signal)) {
        const name = object.metadata?.name?.replace(/-test-node$/, "") ?? "";
        if (type === "DELETED") this.#pods.delete(name);
        else this.#pods.set(name, object);
        for (const waiter of this.#waiters) waiter();
      }
    });
  }

  /** Milliseconds (monotonic) of the moment at which the pod, or its absence, satisfied the condition. */
  async when(name: string, condition: (pod: Pod | undefined) => boolean, timeoutMs = 120_000): Promise<number> {
    if (condition(this.#pods.get(name))) return systemClock.monotonic();
    return new Promise((resolve, reject) => {
      const timer = systemClock.after(timeoutMs, () => {
        this.#waiters.delete(check);
        reject(new Error(`waited in vain for ${name}; last seen: ${JSON.stringify(this.#pods.get(name)?.status)}`));
      });
      const check = (): void => {
        if (!condition(this.#pods.get(name))) return;
        this.#waiters.delete(check);
        timer.cancel();
        resolve(systemClock.monotonic());
      };
      this.#waiters.add(check);
    });
  }

  last(name: string): Pod | undefined {
    return this.#pods.get(name);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#scope.stop();
  }
}

export function isRunning(pod: Pod | undefined): boolean {
  return pod?.status?.phase === "Running";
}

export function isGone(pod: Pod | undefined): boolean {
  return pod === undefined;
}
