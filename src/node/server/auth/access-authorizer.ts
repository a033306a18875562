import { type Clock, never, SharedWork } from "../../../ground/base/index.ts";
import type { SubjectAccessReviewSpec } from "../../../ground/model/index.ts";
import { ExpiringCache } from "./expiring-cache.ts";
import type { Identity } from "./identity.ts";
import type { PatientReviews } from "./reviews.ts";

export interface AccessSettings {
  readonly nodeName: string;
  readonly allowedTtlMs: number;
  readonly deniedTtlMs: number;
}

const mostAnswers = 8192;
// What a requester can make as long as it likes must not fill our memory.
const longestRemembered = 10_000;
/** Whether somebody may do something with this node, by asking the API server. */
export class AccessAuthorizer {
  readonly #settings: AccessSettings;
  readonly #reviews: Pick<PatientReviews, "access">;
  readonly #known: ExpiringCache<boolean>;
  readonly #asking = new SharedWork<string, boolean>();

  constructor(settings: AccessSettings, reviews: Pick<PatientReviews, "access">, clock: Clock) {
    this.#settings = settings;
    this.#reviews = reviews;
    this.#known = new ExpiringCache(clock, mostAnswers);
  }

  /** `from`: the address that asks. Rejects when the API server can't say. */
  async isAllowed(
    { name, uid, groups, extra }: Identity,
    verb: string,
    subresource: string,
    from: string,
  ): Promise<boolean> {
    const spec: SubjectAccessReviewSpec = {
      user: name,
      groups,
      ...(uid === undefined ? {} : { uid }),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
      resourceAttributes: { verb, version: "v1", resource: "nodes", subresource, name: this.#settings.nodeName },
    };
    const key = JSON.stringify(spec);
    return (
      this.#known.get(key) ?? (await this.#asking.join(key, (signal) => this.#ask(key, spec, from, signal), never))
    );
  }

  async #ask(key: string, spec: SubjectAccessReviewSpec, from: string, signal: AbortSignal): Promise<boolean> {
    const { allowed } = await this.#reviews.access(spec, from, signal);
    const { allowedTtlMs, deniedTtlMs } = this.#settings;
    if (key.length < longestRemembered) this.#known.set(key, allowed, allowed ? allowedTtlMs : deniedTtlMs);
    return allowed;
  }
}
