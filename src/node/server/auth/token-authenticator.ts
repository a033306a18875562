import { createHmac, randomBytes } from "node:crypto";
import { type Clock, never, SharedWork } from "../../../ground/base/index.ts";
import { ExpiringCache } from "./expiring-cache.ts";
import { authenticated, type Identity } from "./identity.ts";
import type { PatientReviews } from "./reviews.ts";

const mostTokens = 4096;
/** Whose bearer token this is, by asking the API server. Yes and no are remembered, errors are not. */
export class TokenAuthenticator {
  readonly #ttlMs: number;
  readonly #reviews: Pick<PatientReviews, "token">;
  // Tokens themselves are not kept in memory longer than their request.
  readonly #key = randomBytes(32);
  readonly #known: ExpiringCache<Identity | "unknown">;
  readonly #asking = new SharedWork<string, Identity | "unknown">();

  constructor(ttlMs: number, reviews: Pick<PatientReviews, "token">, clock: Clock) {
    this.#ttlMs = ttlMs;
    this.#reviews = reviews;
    this.#known = new ExpiringCache(clock, mostTokens);
  }

  /** `from`: the address that shows it. Rejects when the API server can't say. */
  async authenticate(token: string, from: string): Promise<Identity | undefined> {
    const digest = createHmac("sha256", this.#key).update(token).digest("base64");
    const answer =
      this.#known.get(digest) ??
      (await this.#asking.join(
        digest,
        async (signal) => {
          const found = (await this.#review(token, from, signal)) ?? "unknown";
          this.#known.set(digest, found, this.#ttlMs);
          return found;
        },
        never,
      ));
    return answer === "unknown" ? undefined : answer;
  }

  async #review(token: string, from: string, signal: AbortSignal): Promise<Identity | undefined> {
    const status = await this.#reviews.token(token, from, signal);
    if (status.authenticated !== true) return undefined;
    const { username = "", uid, groups = [], extra = {} } = status.user ?? {};
    return authenticated({ name: username, ...(uid === undefined ? {} : { uid }), groups, extra });
  }
}
