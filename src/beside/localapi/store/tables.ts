import { type ApiObject, keyOfObject } from "../object.ts";

/** Objects by resource and key. */
export class Tables {
  readonly #objects = new Map<string, Map<string, ApiObject>>();
  readonly #perNamespace = new Map<string, number>();

  get(resource: string, key: string): ApiObject | undefined {
    return this.#objects.get(resource)?.get(key);
  }

  /** In no order. */
  each(resource: string): Iterable<ApiObject> {
    return this.#objects.get(resource)?.values() ?? [];
  }

  /** In the order of their keys. */
  list(resource: string): readonly ApiObject[] {
    return sortedByKey(this.#objects.get(resource) ?? new Map());
  }

  /** A copy to change, of what is there of the resource. */
  copyOf(resource: string): Map<string, ApiObject> {
    return new Map(this.#objects.get(resource));
  }

  /** How many objects stand in the namespace. */
  countIn(namespace: string): number {
    return this.#perNamespace.get(namespace) ?? 0;
  }

  set(resource: string, object: ApiObject): void {
    let table = this.#objects.get(resource);
    if (table === undefined) {
      table = new Map();
      this.#objects.set(resource, table);
    }
    const key = keyOfObject(object);
    if (!table.has(key)) this.#count(object, 1);
    table.set(key, object);
  }

  delete(resource: string, key: string): void {
    const table = this.#objects.get(resource);
    const object = table?.get(key);
    if (object === undefined) return;
    table?.delete(key);
    this.#count(object, -1);
  }

  /** Makes these tables the same as the others. */
  become(others: Tables): void {
    this.#objects.clear();
    this.#perNamespace.clear();
    for (const [resource, table] of others.#objects) this.#objects.set(resource, new Map(table));
    for (const [namespace, count] of others.#perNamespace) this.#perNamespace.set(namespace, count);
  }

  #count({ metadata: { namespace } }: ApiObject, change: number): void {
    if (namespace === undefined) return;
    const count = this.countIn(namespace) + change;
    if (count === 0) this.#perNamespace.delete(namespace);
    else this.#perNamespace.set(namespace, count);
  }
}

export function sortedByKey(objects: ReadonlyMap<string, ApiObject>): readonly ApiObject[] {
  return [...objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}
