import { type Clock, explain, type Logger, SharedWork } from "../../../ground/base/index.ts";
import type { TokenRequest, TokenRequestSpec } from "../../../ground/model/index.ts";

/** Port: asks the API server for a token of a service account. */
export type RequestToken = (
  namespace: string,
  serviceAccount: string,
  spec: TokenRequestSpec,
  signal: AbortSignal,
) => Promise<TokenRequest>;

export interface ServiceAccountToken {
  readonly token: string;
  /** As the API server wrote it. */
  readonly expirationTimestamp: string;
  /** When a holder should ask again, on this machine's clock: a fifth of the lifetime, or all beyond a day, before the end. */
  readonly refreshAt: number;
}

const longestUseMs = 24 * 60 * 60 * 1000;
const jitterSeconds = 10;
/** Whatever a server grants, it is not asked for the next token at once. */
const shortestUseMs = 10_000;
const collectEveryMs = 60_000;

/**
 * Tokens of service accounts, asked for once and renewed in time. How long one is good for counts from when it came: the
 * server's clock may be hours away from ours, and a token that seems to have ended would be asked for without a pause.
 */
export class TokenManager {
  readonly #request: RequestToken | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new SharedWork<string, Entry>();
  #collectedAt = Number.NEGATIVE_INFINITY;

  /** Without `request` there is no API server to ask. */
  constructor(options: {
    readonly request: RequestToken | undefined;
    readonly clock: Clock;
    readonly log: Logger;
    readonly random: () => number;
  }) {
    this.#request = options.request;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#random = options.random;
  }

  get size(): number {
    return this.#entries.size;
  }

  async get(
    namespace: string,
    serviceAccount: string,
    spec: TokenRequestSpec,
    signal: AbortSignal,
  ): Promise<ServiceAccountToken> {
    this.#collect();
    const key = JSON.stringify([
      serviceAccount,
      namespace,
      spec.audiences,
      spec.expirationSeconds ?? null,
      spec.boundObjectRef ?? null,
    ]);
    const known = this.#entries.get(key);
    if (known !== undefined && this.#ageOf(known) < known.useMs) return this.#shown(known);
    try {
      const ask = (shared: AbortSignal): Promise<Entry> => this.#ask(key, namespace, serviceAccount, spec, shared);
      return this.#shown(await this.#asking.join(key, ask, signal));
    } catch (error) {
      signal.throwIfAborted();
      const about = `"${serviceAccount}"/"${namespace}"`;
      if (known === undefined) throw new Error(`failed to fetch token: ${explain(error)}`, { cause: error });
      if (this.#ageOf(known) >= known.lifetimeMs) {
        throw new Error(`token ${about} expired and refresh failed: ${explain(error)}`, { cause: error });
      }
      this.#log.error("Could not renew a token; the old one is still valid", error, { namespace, serviceAccount });
      // Tried again soon, but not by every caller at once.
      return { ...this.#shown(known), refreshAt: this.#clock.now() + jitterSeconds * 1000 };
    }
  }

  /** Drops what belongs to a pod that is gone. */
  forgetPod(uid: string): void {
    for (const [key, { podUid }] of this.#entries) if (podUid === uid) this.#entries.delete(key);
  }

  async #ask(
    key: string,
    namespace: string,
    serviceAccount: string,
    spec: TokenRequestSpec,
    signal: AbortSignal,
  ): Promise<Entry> {
    const request = this.#request;
    if (request === undefined) throw new Error("cannot use TokenManager when kubelet is in standalone mode");
    const { status, spec: granted } = await request(namespace, serviceAccount, spec, signal);
    if (status === undefined || Number.isNaN(Date.parse(status.expirationTimestamp ?? ""))) {
      throw new Error("the API server answered without a token and its expiry");
    }
    const lifetimeMs = (granted.expirationSeconds ?? spec.expirationSeconds ?? 3600) * 1000;
    const jitterMs = Math.floor(this.#random() * jitterSeconds) * 1000;
    const entry: Entry = {
      token: status.token,
      expirationTimestamp: status.expirationTimestamp,
      lifetimeMs,
      useMs: Math.max(Math.min(longestUseMs, lifetimeMs * 0.8) - jitterMs, shortestUseMs),
      cameAt: { wall: this.#clock.now(), monotonic: this.#clock.monotonic() },
      podUid: spec.boundObjectRef?.uid,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #shown(entry: Entry): ServiceAccountToken {
    const { token, expirationTimestamp, useMs } = entry;
    return { token, expirationTimestamp, refreshAt: this.#clock.now() + Math.max(useMs - this.#ageOf(entry), 0) };
  }

  /** By the clock that counts more: one stands still while the machine sleeps, the other may be set back. */
  #ageOf({ cameAt }: Entry): number {
    return Math.max(this.#clock.monotonic() - cameAt.monotonic, this.#clock.now() - cameAt.wall);
  }

  #collect(): void {
    const now = this.#clock.monotonic();
    if (now - this.#collectedAt < collectEveryMs) return;
    this.#collectedAt = now;
    for (const [key, entry] of this.#entries) if (this.#ageOf(entry) > entry.lifetimeMs) this.#entries.delete(key);
  }
}

interface Entry extends Pick<ServiceAccountToken, "token" | "expirationTimestamp"> {
  readonly lifetimeMs: number;
  readonly useMs: number;
  readonly cameAt: { readonly wall: number; readonly monotonic: number };
  readonly podUid: string | undefined;
}
