import type { Life } from "../machine/timeline.ts";
import { causeToStop } from "./causes.ts";
import { namesStop } from "./ledgers.ts";
import type { Scene } from "./scene.ts";
import { type ContainerRecord, nameOf } from "./seen-pods.ts";

/** Sees which containers the agent stops, and whether it has a cause that its ledger names. */
export class Stops {
  readonly #scene: Scene;
  /** Containers that the agent has asked the runtime to stop. */
  readonly #asked = new Set<string>();

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  wasAsked(containerId: string): boolean {
    return this.#asked.has(containerId);
  }

  onCall(operation: string, records: readonly ContainerRecord[], life: Life | undefined): void {
    for (const record of records) {
      if (record.life.step !== "running" || this.#asked.has(record.id)) continue;
      this.#asked.add(record.id);
      this.#onFirst(operation, record, life);
    }
  }

  #onFirst(operation: string, record: ContainerRecord, life: Life | undefined): void {
    const { simulation, pods, ailments, fail } = this.#scene;
    const name = nameOf(record);
    const found = pods.withContainer(name);
    if (found === undefined) return;
    const cause = causeToStop(record.sandbox.state, found, life, ailments);
    simulation.trace.add("cri", `${operation} stops ${name}: ${cause ?? "no cause"}`);
    if (cause === undefined) fail(`${operation} stops container ${name}, which runs and is wanted`);
    const { agent } = simulation;
    if (operation !== "stopContainer" || agent === undefined || agent.life !== life) return;
    if (!namesStop(agent.ledger(record.sandbox.config.metadata?.uid ?? ""), name))
      fail(`container ${name} is stopped, and the ledger names no cause`);
  }
}
