import { Topic } from "../../ground/base/index.ts";
import type { PressureCondition } from "./plan/signals.ts";

/** The pressure that the node is under: there before those who find it out and those who ask for it. */
export class NodePressure {
  readonly #changes = new Topic();
  #conditions: readonly PressureCondition[] = [];

  get conditions(): readonly PressureCondition[] {
    return this.#conditions;
  }

  readonly set = (conditions: readonly PressureCondition[]): void => {
    this.#conditions = conditions;
    this.#changes.tell();
  };

  onChange(listener: () => void): void {
    this.#changes.on(listener);
  }
}
