import { randomBytes } from "node:crypto";
import { CriError } from "../../../connections/cri/index.ts";
import type { Clock } from "../../../ground/base/index.ts";

const lifeMs = 60_000;
const mostWaiting = 1000;
const tokenBytes = 6;

/** Requests that were granted and not used yet: each can be fetched once, within a minute. */
export class Tokens<Request> {
  readonly #clock: Clock;
  readonly #waiting = new Map<string, { readonly request: Request; readonly until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  grant(operation: string, request: Request): string {
    this.#forgetOld();
    if (this.#waiting.size >= mostWaiting) {
      throw new CriError("ResourceExhausted", operation, "maximum number of in-flight requests exceeded");
    }
    const token = randomBytes(tokenBytes).toString("base64url");
    this.#waiting.set(token, { request, until: this.#clock.monotonic() + lifeMs });
    return token;
  }

  redeem(token: string): Request | undefined {
    this.#forgetOld();
    const found = this.#waiting.get(token);
    this.#waiting.delete(token);
    return found?.request;
  }

  #forgetOld(): void {
    const now = this.#clock.monotonic();
    for (const [token, { until }] of this.#waiting) {
      // In the order they were granted: the first that is young enough ends it.
      if (until > now) return;
      this.#waiting.delete(token);
    }
  }
}
