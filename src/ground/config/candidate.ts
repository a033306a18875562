import type { FieldStore } from "./fields/field-store.ts";
import { type FieldPath, fieldPaths, optionalStructs, specOf } from "./fields/fields.ts";
import type { KubeletConfiguration } from "./kubelet-configuration.ts";

/** The whole configuration before its rules have been checked: any string where only some words will do. */
export type KubeletCandidate = Widened<KubeletConfiguration>;

type Widened<Value> = Value extends string
  ? string
  : Value extends boolean
    ? boolean
    : Value extends number
      ? number
      : Value extends readonly (infer Item)[]
        ? readonly Widened<Item>[]
        : Value extends object
          ? { readonly [Key in keyof Value]: Widened<Value[Key]> }
          : Value;

interface Struct {
  [name: string]: unknown;
}

/** The store as an object, with units appended to names; fields without value are there as undefined. */
export function buildCandidate(store: FieldStore): KubeletCandidate {
  const root: Struct = Object.fromEntries(optionalStructs.map((name) => [name, undefined]));
  for (const path of fieldPaths) {
    const struct = optionalStructs.find((name) => path.startsWith(`${name}.`));
    if (struct !== undefined && !store.isPresent(struct)) continue;
    assign(root, internalSegments(path), store.get(path));
  }
  // The table has exactly the fields of the type: fields.test.ts compares the two.
  return root as unknown as KubeletCandidate;
}

/** The value of a field in a finished configuration. */
export function valueAt(config: KubeletConfiguration | KubeletCandidate, path: FieldPath): unknown {
  let value: unknown = config;
  for (const name of internalSegments(path)) value = (value as Struct | undefined)?.[name];
  return value;
}

function internalSegments(path: FieldPath): string[] {
  return `${path}${specOf(path).kind.unit ?? ""}`.split(".");
}

function assign(root: Struct, segments: readonly string[], value: unknown): void {
  let struct = root;
  for (const name of segments.slice(0, -1)) {
    struct[name] ??= {};
    struct = struct[name] as Struct;
  }
  struct[segments.at(-1) ?? ""] = value;
}
