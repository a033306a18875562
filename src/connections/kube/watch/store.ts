import type { KubeObject } from "../resources.ts";

/** What happened to an object; `object` of a deletion is how it was last. */
export type CopyChange<Kept> =
  | { readonly type: "added"; readonly object: Kept }
  | { readonly type: "updated"; readonly old: Kept; readonly object: Kept }
  | { readonly type: "deleted"; readonly object: Kept };

interface Entry<Kept> {
  readonly uid: string;
  readonly resourceVersion: string;
  readonly object: Kept;
}

/** The present state of what is watched, reduced to what is worth keeping, and the changes that lead from one to the next. */
export class CopyStore<Kind extends KubeObject, Kept> {
  #entries = new Map<string, Entry<Kept>>();
  readonly #keep: (object: Kind) => Kept | undefined;
  readonly #handlers = new Set<(change: CopyChange<Kept>) => void>();

  constructor(keep: (object: Kind) => Kept | undefined) {
    this.#keep = keep;
  }

  /** Returns how to stop listening. What is known already is not told again. */
  onChange(handler: (change: CopyChange<Kept>) => void): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  get size(): number {
    return this.#entries.size;
  }

  get(namespace: string | undefined, name: string): Kept | undefined {
    return this.#entries.get(keyOf(namespace, name))?.object;
  }

  all(): Kept[] {
    return [...this.#entries.values()].map(({ object }) => object);
  }

  /** Begins a complete list; its pages are reduced as they come, so that they need not all be held. */
  startList(): { add(object: Kind): void; finish(): void } {
    const listed = new Map<string, Entry<Kept>>();
    return {
      add: (object) => {
        const kept = this.#keep(object);
        if (kept !== undefined) listed.set(...this.#entry(object, kept));
      },
      finish: () => this.#replace(listed),
    };
  }

  set(object: Kind): void {
    const kept = this.#keep(object);
    if (kept === undefined) this.delete(object);
    else this.#put(...this.#entry(object, kept));
  }

  delete(object: Kind): void {
    const key = keyOf(object.metadata?.namespace, object.metadata?.name ?? "");
    const known = this.#entries.get(key);
    if (known === undefined) return;
    this.#entries.delete(key);
    // Whoever follows the changes knows the one that was told of, whichever of its name went.
    const last = object.metadata?.uid === known.uid ? this.#keep(object) : undefined;
    this.#announce({ type: "deleted", object: last ?? known.object });
  }

  #replace(listed: Map<string, Entry<Kept>>): void {
    for (const [key, known] of this.#entries) {
      if (listed.has(key)) continue;
      this.#entries.delete(key);
      this.#announce({ type: "deleted", object: known.object });
    }
    for (const [key, entry] of listed) this.#put(key, entry);
  }

  #put(key: string, entry: Entry<Kept>): void {
    const known = this.#entries.get(key);
    if (known !== undefined && known.uid === entry.uid && known.resourceVersion === entry.resourceVersion) return;
    this.#entries.set(key, entry);
    if (known === undefined) this.#announce({ type: "added", object: entry.object });
    else if (known.uid === entry.uid) this.#announce({ type: "updated", old: known.object, object: entry.object });
    else {
      // The old one went and another came by its name while nobody looked.
      this.#announce({ type: "deleted", object: known.object });
      this.#announce({ type: "added", object: entry.object });
    }
  }

  #announce(change: CopyChange<Kept>): void {
    for (const handler of this.#handlers) handler(change);
  }

  #entry({ metadata }: Kind, object: Kept): [string, Entry<Kept>] {
    const entry = { uid: metadata?.uid ?? "", resourceVersion: metadata?.resourceVersion ?? "", object };
    return [keyOf(metadata?.namespace, metadata?.name ?? ""), entry];
  }
}

function keyOf(namespace: string | undefined, name: string): string {
  return namespace ? `${namespace}/${name}` : name;
}
