import { onAbort, type TaskScope, untilAborted } from "../ground/base/index.ts";

/** An orderly end: asked for from outside, not caused by a failure. */
class StopRequest extends Error {
  override readonly name = "StopRequest";
}

/** Ends this turn of the agent for another one with another configuration, in the same process. */
class TurnRequest extends StopRequest {}

/**
 * Decides once why the agent ends: it was asked to, or a loop it cannot do without died. Whatever waits during
 * start-up waits with `signal`, so that every end reaches it.
 */
export class Ending {
  readonly #controller = new AbortController();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  request(why: string): void {
    this.#controller.abort(new StopRequest(why));
  }

  /** As `request`, and whoever runs the agent starts it again. */
  beginAnew(why: string): void {
    this.#controller.abort(new TurnRequest(why));
  }

  get wantsAnotherTurn(): boolean {
    return this.#controller.signal.reason instanceof TurnRequest;
  }

  /** Ends the agent when a task of the scope fails; stopping the scope is no failure. */
  follow(scope: TaskScope): void {
    const { signal } = scope;
    onAbort(signal, () => {
      const stopped = signal.reason instanceof DOMException && signal.reason.name === "AbortError";
      if (!stopped) this.#controller.abort(signal.reason);
    });
  }

  /** Resolves with the reason of an orderly end, rejects with the failure otherwise. */
  async reached(): Promise<string> {
    const { signal } = this.#controller;
    await untilAborted(signal);
    if (signal.reason instanceof StopRequest) return signal.reason.message;
    throw signal.reason;
  }
}
