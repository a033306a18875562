import { createHmac, randomBytes } from "node:crypto";
import { type Clock, never, SharedWork } from "../../../ground/base/index.ts";
import { ExpiringCache } from "./expiring-cache.ts";
import { authenticated, type Identity } from "./identity.ts";
import { askPatiently, type Reviews } from "./reviews.ts";

const mostTokens = 4096;
/** Whose bearer token this is, by asking the API server. Yes and no are remembered, errors are not. */
export class TokenAuthenticator {
  readonly #ttlMs: number;
  readonly #ports: { readonly reviews: Reviews; readonly clock: Clock; readonly random: () => number };
  // Tokens themselves are not kept in memory longer than their request.
  readonly #key = randomBytes(32);
  readonly #known: ExpiringCache<Identity | "unknown">;
  readonly #asking = new SharedWork<string, Identity | "unknown">();

  constructor(ttlMs: number, ports: { reviews: Reviews; clock: Clock; random: () => number }) {
    this.#ttlMs = ttlMs;
    this.#ports = ports;
    this.#known = new ExpiringCache(ports.clock, mostTokens);
  }

  /** Rejects when the API server can't say. */
  async authenticate(token: string): Promise<Identity | undefined> {
    const digest = createHmac("sha256", this.#key).update(token).digest("base64");
    const answer =
      this.#known.get(digest) ??
      (await this.#asking.join(
        digest,
        async (signal) => {
          const found = (await this.#review(token, signal)) ?? "unknown";
          this.#known.set(digest, found, this.#ttlMs);
          return found;
        },
        never,
      ));
    return answer === "unknown" ? undefined : answer;
  }

  async #review(token: string, signal: AbortSignal): Promise<Identity | undefined> {
    const { reviews } = this.#ports;
    const status = await askPatiently((late) => reviews.token(token, late), this.#ports, signal);
    if (status.authenticated !== true) return undefined;
    const { username = "", uid, groups = [], extra = {} } = status.user ?? {};
    return authenticated({ name: username, ...(uid === undefined ? {} : { uid }), groups, extra });
  }
}
