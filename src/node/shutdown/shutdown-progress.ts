import { Topic } from "../../ground/base/index.ts";

/** Whether the node is being turned off. It is there before all who ask. */
export class ShutdownProgress {
  readonly changed = new Topic();
  #isUnderWay = false;

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** Why the node takes no pods; undefined while it does. */
  get problem(): string | undefined {
    return this.#isUnderWay ? "node is shutting down" : undefined;
  }

  /** Does it now, or when the machine is known to go on; never where it turns off. */
  whenNotUnderWay(act: () => void): void {
    if (!this.#isUnderWay) {
      act();
      return;
    }
    const stop = this.changed.on(() => {
      stop();
      act();
    });
  }

  set(isUnderWay: boolean): void {
    if (this.#isUnderWay === isUnderWay) return;
    this.#isUnderWay = isUnderWay;
    this.changed.tell();
  }
}
