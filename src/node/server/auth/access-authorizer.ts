import { type Clock, never, SharedWork } from "../../../ground/base/index.ts";
import type { SubjectAccessReviewSpec } from "../../../ground/model/index.ts";
import { ExpiringCache } from "./expiring-cache.ts";
import type { Identity } from "./identity.ts";
import { askPatiently, type Reviews } from "./reviews.ts";

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
  readonly #ports: { readonly reviews: Reviews; readonly clock: Clock; readonly random: () => number };
  readonly #known: ExpiringCache<boolean>;
  readonly #asking = new SharedWork<string, boolean>();

  constructor(settings: AccessSettings, ports: { reviews: Reviews; clock: Clock; random: () => number }) {
    this.#settings = settings;
    this.#ports = ports;
    this.#known = new ExpiringCache(ports.clock, mostAnswers);
  }

  /** Rejects when the API server can't say. */
  async isAllowed({ name, uid, groups, extra }: Identity, verb: string, subresource: string): Promise<boolean> {
    const spec: SubjectAccessReviewSpec = {
      user: name,
      groups,
      ...(uid === undefined ? {} : { uid }),
      ...(Object.keys(extra).length === 0 ? {} : { extra }),
      resourceAttributes: { verb, version: "v1", resource: "nodes", subresource, name: this.#settings.nodeName },
    };
    const key = JSON.stringify(spec);
    return this.#known.get(key) ?? (await this.#asking.join(key, (signal) => this.#ask(key, spec, signal), never));
  }

  async #ask(key: string, spec: SubjectAccessReviewSpec, signal: AbortSignal): Promise<boolean> {
    const { reviews } = this.#ports;
    const { allowed } = await askPatiently((late) => reviews.access(spec, late), this.#ports, signal);
    const { allowedTtlMs, deniedTtlMs } = this.#settings;
    if (key.length < longestRemembered) this.#known.set(key, allowed, allowed ? allowedTtlMs : deniedTtlMs);
    return allowed;
  }
}
