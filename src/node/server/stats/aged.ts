import { type Clock, SharedWork } from "../../../ground/base/index.ts";

/** A figure that is costly to take: taken when asked for, once for all who ask meanwhile, and then good for a while. */
export class Aged<Value> {
  readonly #clock: Clock;
  readonly #goodForMs: number;
  readonly #take: (signal: AbortSignal) => Promise<Value>;
  readonly #taking = new SharedWork<"value", Value>();
  #last: { readonly at: number; readonly value: Value } | undefined;

  constructor(clock: Clock, goodForMs: number, take: (signal: AbortSignal) => Promise<Value>) {
    this.#clock = clock;
    this.#goodForMs = goodForMs;
    this.#take = take;
  }

  async get(signal: AbortSignal): Promise<Value> {
    const last = this.#last;
    if (last !== undefined && this.#clock.monotonic() - last.at < this.#goodForMs) return last.value;
    return await this.#taking.join("value", (taking) => this.renew(taking), signal);
  }

  /** Takes it anew, whatever its age. */
  async renew(signal: AbortSignal): Promise<Value> {
    const value = await this.#take(signal);
    this.#last = { at: this.#clock.monotonic(), value };
    return value;
  }
}
