import type { ContainerEventResponse } from "../cri/index.ts";

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
    const onAbort = (): void => stream.wake();
    signal.addEventListener("abort", onAbort);
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
      signal.removeEventListener("abort", onAbort);
    }
  }
}
