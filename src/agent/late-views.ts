import type { LedgerView } from "../base/index.ts";
import type { Pod, PodUid } from "../model/index.ts";
import type { LocalViews, PodViewChange } from "../server/index.ts";

/** The doors open before the pods are there: until their views are attached there is no pod to show. */
export class LateViews implements LocalViews {
  readonly #listeners = new Set<(change: PodViewChange) => void>();
  #views: LocalViews | undefined;

  attach(views: LocalViews): void {
    this.#views = views;
    views.watchPods((change) => this.#announce(change));
    for (const object of views.pods()) this.#announce({ type: "ADDED", object });
  }

  pods(): readonly Pod[] {
    return this.#views?.pods() ?? [];
  }

  watchPods(listener: (change: PodViewChange) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  ledger(uid: PodUid): LedgerView | undefined {
    return this.#views?.ledger(uid);
  }

  #announce(change: PodViewChange): void {
    for (const listener of this.#listeners) listener(change);
  }
}
