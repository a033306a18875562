import { isObject, type JsonObject } from "../json.ts";
import { PatchError } from "./patch-error.ts";

type Identity = (item: unknown) => string;

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
  const merged: unknown[] = [...current];
  for (const item of items) {
    if (item[key] === undefined) {
      throw new PatchError("unmergeable", `map: ${JSON.stringify(item)} does not contain declared merge key: ${key}`);
    }
    const index = merged.findIndex((other) => identity(other) === identity(item));
    if (item["$patch"] === "delete") {
      if (index >= 0) merged.splice(index, 1);
      continue;
    }
    const existing = merged[index];
    if (index < 0) merged.push(mergeItem({}, item));
    else merged[index] = mergeItem(isObject(existing) ? existing : {}, item);
  }
  const own = items.filter((item) => item["$patch"] !== "delete").map(identity);
  return inOrder(merged, wantedOrder(order?.map(identity), own), current.map(identity), identity);
}

/** The order in which a patch wants items: the one it gives, or without one that of its own items. */
function wantedOrder(given: readonly string[] | undefined, own: readonly string[]): readonly string[] {
  if (given === undefined) return own;
  const places = own.map((identity) => given.indexOf(identity));
  const isInOrder = places.every((place, index) => place >= 0 && place > (places[index - 1] ?? -1));
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
  const merged = [...current, ...patch.filter((value) => !current.includes(value))];
  const identity: Identity = (value) => JSON.stringify(value);
  const wanted = wantedOrder(order?.map(identity), patch.map(identity));
  return inOrder(merged, wanted, current.map(identity), identity);
}

export function removeValues(current: readonly unknown[], values: readonly unknown[]): readonly unknown[] {
  return current.filter((value) => !values.includes(value));
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
  const named = items.filter((item) => order.includes(identity(item)));
  named.sort((a, b) => order.indexOf(identity(a)) - order.indexOf(identity(b)));
  const others = items.filter((item) => !order.includes(identity(item)));
  const sorted: unknown[] = [];
  let next = 0;
  for (const item of named) {
    const place = before.indexOf(identity(item));
    while (next < others.length && before.indexOf(identity(others[next])) < place) {
      sorted.push(others[next]);
      next++;
    }
    sorted.push(item);
  }
  return [...sorted, ...others.slice(next)];
}
