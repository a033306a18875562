import { type Clock, withDeadline } from "../../../ground/base/index.ts";
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

/** Asks until there is an answer, an error that stays, or no time left. */
export async function askPatiently<Answer>(
  ask: (signal: AbortSignal) => Promise<Answer>,
  ports: { readonly reviews: Pick<Reviews, "isTransient">; readonly clock: Clock; readonly random: () => number },
  signal: AbortSignal,
): Promise<Answer> {
  const { clock } = ports;
  const late = (): Error => new Error(`the API server gave no answer in ${limitMs} ms`);
  return withDeadline(clock, limitMs, late, signal, async (bounded) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await ask(bounded);
      } catch (error) {
        if (bounded.aborted || attempt === tries || !ports.reviews.isTransient(error)) throw error;
        const pauseMs = firstPauseMs * factor ** (attempt - 1) * (1 + jitter * ports.random());
        await clock.sleep(pauseMs, bounded);
      }
    }
  });
}
