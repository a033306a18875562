import { loadedPart, type TaskScope } from "../../../ground/base/index.ts";
import type { NodeStatistics } from "./node-stats.ts";
import type { StatsPorts } from "./ports.ts";

/** Statistics of the node and its pods; nothing is loaded or measured before somebody asks. */
export class LazyStatistics {
  readonly #scope: TaskScope;
  readonly #ports: () => StatsPorts;
  readonly #isReady: () => boolean;
  #statistics: Promise<NodeStatistics> | undefined;

  /** What is measured beside requests lives in the scope; `ports` is called once the runtime can be asked. */
  constructor(scope: TaskScope, ports: () => StatsPorts, isReady: () => boolean) {
    this.#scope = scope;
    this.#ports = ports;
    this.#isReady = isReady;
  }

  /** False until the agent has reached its runtime. */
  get isReady(): boolean {
    return this.#isReady();
  }

  /** Rejects until the agent has reached its runtime. */
  async get(): Promise<NodeStatistics> {
    if (!this.isReady) throw new Error("the agent has not reached the container runtime yet");
    this.#statistics ??= loadedPart(import("./node-stats.ts")).then(
      ({ NodeStatistics }) => new NodeStatistics(this.#scope, this.#ports()),
    );
    return await this.#statistics;
  }
}
