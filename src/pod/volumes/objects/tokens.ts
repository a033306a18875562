import { type Clock, explain, type Logger } from "../../../ground/base/index.ts";
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
  /** When a holder should ask again: a fifth of the lifetime, or all beyond a day, before the end. */
  readonly refreshAt: number;
}

const longestUseMs = 24 * 60 * 60 * 1000;
const jitterSeconds = 10;
const collectEveryMs = 60_000;

/** Tokens of service accounts, asked for once and renewed in time. */
export class TokenManager {
  readonly #request: RequestToken | undefined;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #entries = new Map<string, Entry>();
  readonly #asking = new Map<string, Promise<Entry>>();
  #collectedAt = 0;

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
    const now = this.#clock.now();
    if (known !== undefined && now < known.refreshAt) return known;
    try {
      return await this.#ask(key, namespace, serviceAccount, spec, signal);
    } catch (error) {
      signal.throwIfAborted();
      const about = `"${serviceAccount}"/"${namespace}"`;
      if (known === undefined) throw new Error(`failed to fetch token: ${explain(error)}`, { cause: error });
      if (now >= known.expiresAt) {
        throw new Error(`token ${about} expired and refresh failed: ${explain(error)}`, { cause: error });
      }
      this.#log.error("Could not renew a token; the old one is still valid", error, { namespace, serviceAccount });
      // Tried again soon, but not by every caller at once.
      return { ...known, refreshAt: now + jitterSeconds * 1000 };
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
    const running = this.#asking.get(key);
    if (running !== undefined) return running;
    const asking = (async (): Promise<Entry> => {
      const { status, spec: granted } = await request(namespace, serviceAccount, spec, signal);
      const expiresAt = Date.parse(status?.expirationTimestamp ?? "");
      if (status === undefined || Number.isNaN(expiresAt)) {
        throw new Error("the API server answered without a token and its expiry");
      }
      const lifetimeMs = (granted.expirationSeconds ?? spec.expirationSeconds ?? 3600) * 1000;
      const jitterMs = Math.floor(this.#random() * jitterSeconds) * 1000;
      const issuedAt = expiresAt - lifetimeMs;
      const refreshAt = Math.min(issuedAt + longestUseMs, expiresAt - lifetimeMs * 0.2) - jitterMs;
      const { token, expirationTimestamp } = status;
      const entry = { token, expirationTimestamp, expiresAt, refreshAt, podUid: spec.boundObjectRef?.uid };
      this.#entries.set(key, entry);
      return entry;
    })();
    this.#asking.set(key, asking);
    try {
      return await asking;
    } finally {
      this.#asking.delete(key);
    }
  }

  #collect(): void {
    const now = this.#clock.now();
    if (now - this.#collectedAt < collectEveryMs) return;
    this.#collectedAt = now;
    for (const [key, { expiresAt }] of this.#entries) if (expiresAt < now) this.#entries.delete(key);
  }
}

interface Entry extends ServiceAccountToken {
  readonly expiresAt: number;
  readonly podUid: string | undefined;
}
