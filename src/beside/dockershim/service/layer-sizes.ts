import { type Clock, isAbort, type Logger, messageOf, TaskScope } from "../../../ground/base/index.ts";
import type { Engine } from "../engine/index.ts";

export interface LayerSize {
  readonly bytes: number;
  /** Wall-clock nanoseconds. */
  readonly at: bigint;
}

interface Entry {
  readonly size: LayerSize | undefined;
  /** On the clock's monotonic scale; undefined: never asked. */
  readonly askedAt: number | undefined;
}

const freshMs = 60_000;
const forgottenMs = 10 * 60_000;

/**
 * What containers have written into their own layer. Docker walks the layer to tell, so it is asked at most once a
 * minute for each and about one container at a time; in between the last answer counts.
 */
export class LayerSizes implements AsyncDisposable {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #stamp: () => bigint;
  readonly #entries = new Map<string, Entry>();
  readonly #waiting = new Set<string>();
  readonly #scope = new TaskScope();
  #isBusy = false;

  constructor(ports: {
    readonly engine: Engine;
    readonly clock: Clock;
    readonly log: Logger;
    readonly stamp: () => bigint;
  }) {
    this.#engine = ports.engine;
    this.#clock = ports.clock;
    this.#log = ports.log;
    this.#stamp = ports.stamp;
  }

  /** The last that is known; has it measured again where that is long ago. */
  of(id: string): LayerSize | undefined {
    const entry = this.#entries.get(id);
    if (entry?.askedAt === undefined || this.#clock.monotonic() - entry.askedAt > freshMs) {
      this.#waiting.add(id);
      this.#work();
    }
    return entry?.size;
  }

  #work(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#scope.spawn("measure layers", async (signal) => {
      try {
        for (const id of this.#waiting) {
          this.#waiting.delete(id);
          await this.#measure(id, signal);
        }
        this.#forgetOld();
      } finally {
        this.#isBusy = false;
      }
    });
  }

  async #measure(id: string, signal: AbortSignal): Promise<void> {
    const askedAt = this.#clock.monotonic();
    let size = this.#entries.get(id)?.size;
    try {
      const { writtenBytes } = await this.#engine.inspectContainer(id, signal, "with sizes");
      if (writtenBytes !== undefined) size = { bytes: Math.max(Math.trunc(writtenBytes), 0), at: this.#stamp() };
    } catch (error) {
      if (isAbort(error, signal)) throw error;
      this.#log.debug(2, "cannot measure what a container has written", { container: id, error: messageOf(error) });
    }
    this.#entries.set(id, { size, askedAt });
  }

  #forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [id, { askedAt }] of this.#entries)
      if (askedAt !== undefined && now - askedAt > forgottenMs) this.#entries.delete(id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.stop();
  }
}
