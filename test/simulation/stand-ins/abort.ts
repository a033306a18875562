// In place of Node's AbortController, which is an EventTarget with all that a browser wants of one: every call to the
// runtime, the API or a clock makes or hears some, and together they took a tenth of the time of a simulated hour.
// What the agent relies on is the same: listeners hear of it at once and in order, once each, unless they have left.

type Listener = (event: { readonly type: "abort"; readonly target: Signal }) => void;

class Signal {
  aborted = false;
  reason: unknown;
  #listeners: Set<Listener> | undefined;

  addEventListener(type: string, listener: Listener): void {
    if (type !== "abort") throw new Error(`a signal has no event "${type}"`);
    this.#listeners ??= new Set();
    this.#listeners.add(listener);
  }

  removeEventListener(_type: string, listener: Listener): void {
    this.#listeners?.delete(listener);
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  /** Node warns of many listeners; nobody reads that here. */
  setMaxListeners(): void {}

  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    const listeners = this.#listeners;
    if (listeners === undefined) return;
    for (const listener of listeners) {
      listeners.delete(listener);
      try {
        listener({ type: "abort", target: this });
      } catch (error) {
        // As Node does: it is nobody's who asked, and ends the process.
        process.nextTick(() => {
          throw error;
        });
      }
    }
  }
}

class Controller {
  readonly signal = new Signal();

  abort(reason: unknown = new DOMException("This operation was aborted", "AbortError")): void {
    this.signal.abort(reason);
  }
}

export { Controller as AbortController };
