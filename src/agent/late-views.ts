import type { LedgerView } from "../ground/base/index.ts";
import type { ObservedPod, Pod, PodUid } from "../ground/model/index.ts";
import type { LocalViews, PodViewChange, Reviews, RuntimeViews } from "../node/server/index.ts";

/** The doors open before the pods are there: until their views are attached there is no pod to show. */
export class LateViews implements LocalViews, RuntimeViews {
  readonly #listeners = new Set<(change: PodViewChange) => void>();
  #views: LocalViews | undefined;
  #runtime: RuntimeViews | undefined;

  attach(views: LocalViews, runtime: RuntimeViews): void {
    this.#views = views;
    this.#runtime = runtime;
    views.watchPods((change) => this.#announce(change));
    for (const object of views.pods()) this.#announce({ type: "ADDED", object });
  }

  pods(): readonly Pod[] {
    return this.#views?.pods() ?? [];
  }

  ownUid(apiUid: string): PodUid {
    return this.#views?.ownUid(apiUid) ?? (apiUid as PodUid);
  }

  watchPods(listener: (change: PodViewChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ledger(uid: PodUid): LedgerView | undefined {
    return this.#views?.ledger(uid);
  }

  latest(uid: PodUid): ObservedPod | undefined {
    return this.#runtime?.latest(uid);
  }

  async inspect(uid: PodUid, signal: AbortSignal): Promise<ObservedPod> {
    if (this.#runtime === undefined) throw new Error("the agent has not reached the container runtime yet");
    return await this.#runtime.inspect(uid, signal);
  }

  #announce(change: PodViewChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}

/** Nobody can be asked who a caller is before the agent has joined its cluster. */
export class LateReviews implements Reviews {
  #reviews: Reviews | undefined;

  attach(reviews: Reviews): void {
    this.#reviews = reviews;
  }

  async token(...args: Parameters<Reviews["token"]>): ReturnType<Reviews["token"]> {
    return await this.#api().token(...args);
  }

  async access(...args: Parameters<Reviews["access"]>): ReturnType<Reviews["access"]> {
    return await this.#api().access(...args);
  }

  isTransient(error: unknown): boolean {
    return this.#reviews?.isTransient(error) === true;
  }

  #api(): Reviews {
    if (this.#reviews === undefined) throw new Error("the agent has not joined its cluster yet");
    return this.#reviews;
  }
}
