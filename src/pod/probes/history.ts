import type { ProbeOutcome } from "./outcome.ts";

/** One attempt of a probe, as people are shown it. */
export interface ProbeAttempt {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly outcome: ProbeOutcome["type"];
}

const outcomes = ["success", "warning", "failure", "error"] as const;
const mostKept = 50;

/** The last attempts of a probe. Each is one number: there may be thousands of probes, and hardly anybody looks. */
export class ProbeHistory {
  readonly #attempts: number[] = [];

  add(at: number, outcome: ProbeAttempt["outcome"]): void {
    this.#attempts.push(Math.round(at) * outcomes.length + outcomes.indexOf(outcome));
    if (this.#attempts.length > mostKept) this.#attempts.shift();
  }

  /** The latest last. */
  attempts(): readonly ProbeAttempt[] {
    return this.#attempts.map((each) => ({
      at: Math.floor(each / outcomes.length),
      outcome: outcomes[each % outcomes.length] ?? "error",
    }));
  }
}
