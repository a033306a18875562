import { jsonEqual } from "../../../ground/model/index.ts";
import { isObject, type JsonObject } from "../json.ts";
import { type FieldSchema, type FieldType, schemaOf } from "../schema/schema.ts";

/**
 * A set of fields in the form of upstream's FieldsV1: `f:NAME` is a field, `k:{KEYS}` an item of a list by its keys,
 * `v:VALUE` an item by its value. An empty tree stands for the field itself, `.` for itself beside what is below it.
 */
export interface FieldTree {
  readonly [step: string]: FieldTree;
}

const whole: FieldTree = {};
const isWhole = (tree: FieldTree): boolean => Object.keys(tree).length === 0;

/** The fields that a value of the type names. */
export function fieldTree(value: unknown, type: FieldType | undefined, field?: FieldSchema): FieldTree {
  if (field?.atomic === true) return whole;
  if (isObject(value) && (type?.form === "object" || type?.form === "map")) return treeOfObject(value, type);
  if (!Array.isArray(value) || type?.form !== "list") return whole;
  if (field?.isSet === true) return Object.fromEntries(value.map((item) => [`v:${JSON.stringify(item)}`, whole]));
  const { mapKeys } = field ?? {};
  if (mapKeys === undefined) return whole;
  return Object.fromEntries(
    value.filter(isObject).map((item) => [stepTo(item, mapKeys), { ".": whole, ...fieldTree(item, type.of) }]),
  );
}

function treeOfObject(value: JsonObject, type: FieldType & { form: "object" | "map" }): FieldTree {
  const schema = type.form === "object" ? schemaOf(type.type) : undefined;
  if (schema?.atomic === true) return whole;
  const tree: Record<string, FieldTree> = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === null) continue;
    const field = schema?.fields.get(key);
    tree[`f:${key}`] = type.form === "map" ? fieldTree(item, type.of) : fieldTree(item, field?.type, field);
  }
  return tree;
}

/** A port without a protocol is a TCP port. */
function stepTo(item: JsonObject, keys: readonly string[]): string {
  const entries = keys.map((key) => [key, item[key] ?? (key === "protocol" ? "TCP" : null)]);
  return `k:${JSON.stringify(Object.fromEntries(entries.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))))}`;
}

/** What the tree has and the other has not; a field of which the other has a part counts as had. */
export function without(tree: FieldTree, other: FieldTree): FieldTree | undefined {
  const left: Record<string, FieldTree> = {};
  for (const [step, below] of Object.entries(tree)) {
    const there = other[step];
    const rest = there === undefined ? below : without(withoutItself(below), there);
    if (rest !== undefined) left[step] = rest;
  }
  return isWhole(left) ? undefined : left;
}

function withoutItself(tree: FieldTree): FieldTree {
  const { ".": _itself, ...below } = tree;
  return below;
}

/** The value without these fields. */
export function removeFields(value: unknown, tree: FieldTree): unknown {
  if (Array.isArray(value)) {
    const stepOf = stepsOfItems(tree);
    return value.flatMap((item) => keptItem(item, stepOf(item), tree));
  }
  if (!isObject(value)) return value;
  const kept: Record<string, unknown> = { ...value };
  for (const [step, below] of Object.entries(tree)) {
    if (!step.startsWith("f:")) continue;
    const key = step.slice(2);
    if (isWhole(below)) delete kept[key];
    else if (key in kept) kept[key] = removeFields(kept[key], below);
  }
  return kept;
}

function keptItem(item: unknown, step: string | undefined, tree: FieldTree): readonly unknown[] {
  const below = step === undefined ? undefined : tree[step];
  if (step === undefined || below === undefined) return [item];
  return step.startsWith("v:") || "." in below ? [] : [removeFields(item, below)];
}

/** By which step of the tree an item of a list is reached. The steps of one list name the same keys, or few sets of them. */
function stepsOfItems(tree: FieldTree): (item: unknown) => string | undefined {
  const keySets = new Map<string, readonly string[]>();
  for (const step of Object.keys(tree)) {
    if (!step.startsWith("k:")) continue;
    const keys = Object.keys(JSON.parse(step.slice(2)));
    keySets.set(keys.join(" "), keys);
  }
  return (item) => {
    const byValue = `v:${JSON.stringify(item)}`;
    if (Object.hasOwn(tree, byValue)) return byValue;
    if (!isObject(item)) return undefined;
    for (const keys of keySets.values()) {
      const step = stepTo(item, keys);
      if (Object.hasOwn(tree, step)) return step;
    }
    return undefined;
  };
}

/** The fields of `tree` whose values differ, as people write them, such as `.spec.containers[name="web"].image`. */
export function differing(tree: FieldTree, wanted: unknown, current: unknown, path = ""): readonly string[] {
  if (isWhole(tree)) {
    const saysNothing = isObject(wanted) && Object.keys(wanted).length === 0;
    return saysNothing || current === undefined || jsonEqual(wanted, current) ? [] : [path];
  }
  const [wantedAt, currentAt] = [readerOf(wanted, tree), readerOf(current, tree)];
  return Object.entries(tree).flatMap(([step, below]) => {
    if (step === "." || step.startsWith("v:")) return [];
    return differing(below, wantedAt(step), currentAt(step), `${path}${shown(step)}`);
  });
}

/** What stands where a step of the tree leads. */
function readerOf(value: unknown, tree: FieldTree): (step: string) => unknown {
  if (!Array.isArray(value)) {
    return (step) => (isObject(value) && step.startsWith("f:") ? value[step.slice(2)] : undefined);
  }
  const stepOf = stepsOfItems(tree);
  const items = new Map<string, unknown>();
  for (const item of value) {
    const step = stepOf(item);
    if (step !== undefined && !items.has(step)) items.set(step, item);
  }
  return (step) => items.get(step);
}

function shown(step: string): string {
  if (step.startsWith("f:")) return `.${step.slice(2)}`;
  const keys = Object.entries<unknown>(JSON.parse(step.slice(2)));
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
}

/** What both trees have. */
export function common(tree: FieldTree, other: FieldTree): FieldTree | undefined {
  const shared: Record<string, FieldTree> = {};
  for (const [step, below] of Object.entries(tree)) {
    const there = other[step];
    if (there === undefined) continue;
    const both = isWhole(below) && isWhole(there) ? whole : common(below, there);
    if (both !== undefined) shared[step] = both;
  }
  return isWhole(shared) ? undefined : shared;
}
