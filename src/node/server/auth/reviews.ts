import { type Clock, FairLimiter, withDeadline } from "../../../ground/base/index.ts";
import type {
  SubjectAccessReviewSpec,
  SubjectAccessReviewStatus,
  TokenReviewStatus,
} from "../../../ground/model/index.ts";

/** The questions that only the API server can answer. */
export interface Reviews {
  token(token: string, signal: AbortSignal): Promise<TokenReviewStatus>;
  access(spec: SubjectAccessReviewSpec, signal: AbortSignal): Promise<SubjectAccessReviewStatus>;
  /** Whether asking again may help. */
  isTransient(error: unknown): boolean;
}

/** Without a cluster there is nobody to ask. */
export const noReviews: Reviews = {
  token: () => Promise.reject(notJoined()),
  access: () => Promise.reject(notJoined()),
  isTransient: () => false,
};

function notJoined(): Error {
  return new Error("the agent has not joined its cluster yet");
}

const tries = 5;
const firstPauseMs = 500;
const factor = 1.5;
const jitter = 0.2;
/** How long one question may take in all. */
const limitMs = 30_000;
/** Questions under way at once, and those of one address. */
const turns = { limit: 16, share: 4, patienceMs: 1_000 };
/** Of one address; who asks more than that at once is after something else. */
const mostWaiting = 64;

/** An address asks about more than the API server is to be bothered with. */
export class TooManyQuestionsError extends Error {
  override readonly name = "TooManyQuestionsError";
}

/**
 * Asks the API server until there is an answer, an error that stays, or no time left. Whoever reaches the node's port, a
 * pod for one, can have us ask about as many tokens as it makes up: each address has its turn, and so many questions.
 */
export class PatientReviews {
  readonly #ports: { readonly reviews: Reviews; readonly clock: Clock; readonly random: () => number };
  readonly #turns: FairLimiter<string>;
  readonly #waiting = new Map<string, number>();

  constructor(ports: { readonly reviews: Reviews; readonly clock: Clock; readonly random: () => number }) {
    this.#ports = ports;
    this.#turns = new FairLimiter(ports.clock, turns);
  }

  token(token: string, from: string, signal: AbortSignal): Promise<TokenReviewStatus> {
    return this.#ask(from, (late) => this.#ports.reviews.token(token, late), signal);
  }

  access(spec: SubjectAccessReviewSpec, from: string, signal: AbortSignal): Promise<SubjectAccessReviewStatus> {
    return this.#ask(from, (late) => this.#ports.reviews.access(spec, late), signal);
  }

  async #ask<Answer>(
    from: string,
    ask: (signal: AbortSignal) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer> {
    const waiting = this.#waiting.get(from) ?? 0;
    if (waiting >= mostWaiting) throw new TooManyQuestionsError(`${waiting} questions of ${from} wait for an answer`);
    this.#waiting.set(from, waiting + 1);
    try {
      const late = (): Error => new Error(`the API server gave no answer in ${limitMs} ms`);
      return await withDeadline(this.#ports.clock, limitMs, late, signal, (bounded) => this.#retry(from, ask, bounded));
    } finally {
      const left = (this.#waiting.get(from) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(from);
      else this.#waiting.set(from, left);
    }
  }

  async #retry<Answer>(
    from: string,
    ask: (signal: AbortSignal) => Promise<Answer>,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { reviews, clock, random } = this.#ports;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#turns.run(from, () => ask(signal), signal);
      } catch (error) {
        if (signal.aborted || attempt === tries || !reviews.isTransient(error)) throw error;
        await clock.sleep(firstPauseMs * factor ** (attempt - 1) * (1 + jitter * random()), signal);
      }
    }
  }
}
