import { type Clock, isAbort } from "../../ground/base/index.ts";
import { criCodeOf } from "./errors.ts";
import { type CriOperation, operationTypes } from "./operations.ts";

/** One finished call, for metrics and for judging the runtime by what it really did. */
export interface CallReport {
  readonly operation: CriOperation;
  /** The name metrics use. */
  readonly operationType: (typeof operationTypes)[CriOperation];
  readonly durationMs: number;
  /** undefined: the call succeeded. */
  readonly error: unknown;
  /** True when we gave the call up ourselves; it says nothing about the runtime. */
  readonly cancelled: boolean;
}

export interface PendingCall {
  readonly operation: CriOperation;
  readonly pendingMs: number;
}

/** What the runtime did with our calls lately. */
export interface CallHealth {
  /** When the last success or refusal came, on the clock's monotonic scale: the runtime was there. undefined: never. */
  readonly lastAnswerAt: number | undefined;
  /** Calls in a row that got no answer: no connection, or none in time. */
  readonly unansweredInARow: number;
  readonly lastFailure: { readonly at: number; readonly operation: CriOperation; readonly error: unknown } | undefined;
  /** Calls without an answer yet, longest pending first. Streams are not among them. */
  readonly pending: readonly PendingCall[];
}

/** Watches every call from its start to its end. */
export class CallLog {
  readonly #clock: Clock;
  readonly #onCall: (report: CallReport) => void;
  readonly #pending = new Set<StartedCall>();
  #lastAnswerAt: number | undefined;
  #unansweredInARow = 0;
  #lastFailure: CallHealth["lastFailure"];

  constructor(clock: Clock, onCall: (report: CallReport) => void) {
    this.#clock = clock;
    this.#onCall = onCall;
  }

  health(): CallHealth {
    const now = this.#clock.monotonic();
    const pending = [...this.#pending].map(({ operation, startedAt }) => ({ operation, pendingMs: now - startedAt }));
    return {
      lastAnswerAt: this.#lastAnswerAt,
      unansweredInARow: this.#unansweredInARow,
      lastFailure: this.#lastFailure,
      pending: pending.sort((a, b) => b.pendingMs - a.pendingMs),
    };
  }

  /** Returns what to call when the call has ended, with its error if it failed. */
  begin(operation: CriOperation, signal: AbortSignal | undefined): EndCall {
    const call = { operation, startedAt: this.#clock.monotonic() };
    this.#pending.add(call);
    return (error) => {
      this.#pending.delete(call);
      this.#end(call, signal, error);
    };
  }

  /** As `begin`, for a call that is meant to last. */
  beginStream(operation: CriOperation, signal: AbortSignal | undefined): EndCall {
    const call = { operation, startedAt: this.#clock.monotonic() };
    return (error) => this.#end(call, signal, error);
  }

  #end({ operation, startedAt }: StartedCall, signal: AbortSignal | undefined, error: unknown): void {
    const cancelled = signal !== undefined && isAbort(error, signal);
    if (!cancelled) {
      if (error !== undefined) this.#lastFailure = { at: this.#clock.now(), operation, error };
      const code = criCodeOf(error);
      if (code === "Unavailable" || code === "DeadlineExceeded") {
        this.#unansweredInARow++;
      } else {
        this.#unansweredInARow = 0;
        this.#lastAnswerAt = this.#clock.monotonic();
      }
    }
    const durationMs = this.#clock.monotonic() - startedAt;
    this.#onCall({ operation, operationType: operationTypes[operation], durationMs, error, cancelled });
  }
}

type EndCall = (error?: unknown) => void;

interface StartedCall {
  readonly operation: CriOperation;
  readonly startedAt: number;
}
