import type { ContainerEventResponse } from "../../connections/cri/index.ts";
import { onAbort } from "../../ground/base/index.ts";

/** Hands every event to every open stream. */
export class EventHub {
  readonly #streams = new Set<{ readonly queue: ContainerEventResponse[]; wake: () => void }>();

  get hasStreams(): boolean {
    return this.#streams.size > 0;
  }

  publish(event: ContainerEventResponse): void {
    for (const stream of this.#streams) {
      stream.queue.push(event);
      stream.wake();
    }
  }

  /** Events from now on, until the signal aborts; then throws its reason. */
  async *stream(signal: AbortSignal): AsyncGenerator<ContainerEventResponse, never> {
    const stream = { queue: [] as ContainerEventResponse[], wake: () => {} };
    using _ = onAbort(signal, () => stream.wake());
    this.#streams.add(stream);
    try {
      for (;;) {
        signal.throwIfAborted();
        const event = stream.queue.shift();
        if (event !== undefined) yield event;
        else {
          await new Promise<void>((resolve) => {
            stream.wake = resolve;
          });
        }
      }
    } finally {
      this.#streams.delete(stream);
    }
  }
}
