import { isObject, type JsonObject } from "../json.ts";
import { PatchError } from "./patch-error.ts";

// Bodies may hold tens of thousands of items, so that nothing here may look through a list for each item of another.

type Identity = (item: unknown) => string;

/** Where things stand in a list for the first time. */
function places(identities: readonly string[]): ReadonlyMap<string, number> {
  const found = new Map<string, number>();
  for (const [index, identity] of identities.entries()) if (!found.has(identity)) found.set(identity, index);
  return found;
}

/** Merges lists of objects that are told apart by `key`. */
export function mergeItems(
  current: readonly unknown[],
  patch: readonly unknown[],
  key: string,
  order: readonly unknown[] | undefined,
  mergeItem: (from: JsonObject, patch: JsonObject) => JsonObject,
): readonly unknown[] {
  const items = patch.map((item) => asItem(item));
  const identity: Identity = (item) => (isObject(item) ? String(item[key]) : "");
  // Items of a list that is replaced whole may share a key, as a node's addresses of both families do.
  const whole = items.filter((item) => item["$patch"] !== "replace");
  if (whole.length < items.length) return whole.map((item) => mergeItem({}, item));
  const merged = new ItemsByIdentity(current, identity);
  for (const item of items) {
    if (item[key] === undefined) {
      throw new PatchError("unmergeable", `map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
    }
    if (item["$patch"] === "delete") merged.remove(identity(item));
    else merged.replace(identity(item), (existing) => mergeItem(isObject(existing) ? existing : {}, item));
  }
  const own = items.filter((item) => item["$patch"] !== "delete").map(identity);
  return inOrder(merged.list(), wantedOrder(order?.map(identity), own), current.map(identity), identity);
}

/** A list in which the first item of an identity is found without looking. */
export class ItemsByIdentity {
  readonly #items: { value: unknown; isGone: boolean }[] = [];
  readonly #indexes = new Map<string, number[]>();

  constructor(items: readonly unknown[], identity: Identity) {
    for (const item of items) this.#add(identity(item), item);
  }

  /** Removes the first item of the identity, if there is one. */
  remove(identity: string): void {
    const index = this.#indexes.get(identity)?.shift();
    const item = index === undefined ? undefined : this.#items[index];
    if (item !== undefined) item.isGone = true;
  }

  /** Puts another in the place of the first item of the identity, or at the end. */
  replace(identity: string, change: (existing: unknown) => unknown): void {
    const index = this.#indexes.get(identity)?.[0];
    const item = index === undefined ? undefined : this.#items[index];
    if (item === undefined) this.#add(identity, change(undefined));
    else item.value = change(item.value);
  }

  list(): readonly unknown[] {
    return this.#items.filter(({ isGone }) => !isGone).map(({ value }) => value);
  }

  #add(identity: string, value: unknown): void {
    const index = this.#items.push({ value, isGone: false }) - 1;
    const indexes = this.#indexes.get(identity);
    if (indexes === undefined) this.#indexes.set(identity, [index]);
    else indexes.push(index);
  }
}

/** The order in which a patch wants items: the one it gives, or without one that of its own items. */
function wantedOrder(given: readonly string[] | undefined, own: readonly string[]): readonly string[] {
  if (given === undefined) return own;
  const placeOf = places(given);
  const wanted = own.map((identity) => placeOf.get(identity) ?? -1);
  const isInOrder = wanted.every((place, index) => place >= 0 && place > (wanted[index - 1] ?? -1));
  if (isInOrder) return given;
  const lists = `[${own.join(" ")}] doesn't match $setElementOrder list: [${given.join(" ")}]`;
  throw new PatchError("unmergeable", `The order in patch list: ${lists}`);
}

function asItem(item: unknown): JsonObject {
  if (isObject(item)) return item;
  throw new PatchError("unmergeable", `list element types are not identical: ${JSON.stringify(item)}`);
}

/** Merges lists of distinct plain values. */
export function mergeValues(
  current: readonly unknown[],
  patch: readonly unknown[],
  order: readonly unknown[] | undefined,
): readonly unknown[] {
  const merged = withValues(current, patch);
  const identity: Identity = (value) => JSON.stringify(value);
  const wanted = wantedOrder(order?.map(identity), patch.map(identity));
  return inOrder(merged, wanted, current.map(identity), identity);
}

/** The values, and those of the others that are not among them. */
export function withValues(current: readonly unknown[], others: readonly unknown[]): readonly unknown[] {
  const known = new Set(current);
  return [...current, ...others.filter((value) => !known.has(value))];
}

export function removeValues(current: readonly unknown[], values: readonly unknown[]): readonly unknown[] {
  const removed = new Set(values);
  return current.filter((value) => !removed.has(value));
}

/**
 * Items that are wanted in an order stand in it; the others keep their places among those that were there before. An
 * item that is new stands as early as the order allows.
 */
function inOrder(
  items: readonly unknown[],
  order: readonly string[],
  before: readonly string[],
  identity: Identity,
): readonly unknown[] {
  const wanted = places(order);
  const was = places(before);
  const placeIn = (found: ReadonlyMap<string, number>, item: unknown): number => found.get(identity(item)) ?? -1;
  const named = items.filter((item) => wanted.has(identity(item)));
  named.sort((a, b) => placeIn(wanted, a) - placeIn(wanted, b));
  const others = items.filter((item) => !wanted.has(identity(item)));
  const sorted: unknown[] = [];
  let next = 0;
  for (const item of named) {
    const place = placeIn(was, item);
    while (next < others.length && placeIn(was, others[next]) < place) {
      sorted.push(others[next]);
      next++;
    }
    sorted.push(item);
  }
  return [...sorted, ...others.slice(next)];
}
