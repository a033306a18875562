import type { Origin } from "../agent-config.ts";
import { keyPath } from "./field-kinds.ts";
import { type FieldPath, type FieldValue, fieldPaths, optionalStructs, specOf } from "./fields.ts";

type StructPath = (typeof optionalStructs)[number];

/** The configuration while it is being put together: what is set so far, and who set it. */
export class FieldStore {
  readonly #values = new Map<FieldPath, unknown>();
  readonly #structs = new Set<StructPath>();
  readonly #origins = new Map<string, Origin>();

  get<Path extends FieldPath>(path: Path): FieldValue<Path> | undefined {
    return this.#values.get(path) as FieldValue<Path> | undefined;
  }

  has(path: FieldPath): boolean {
    return this.#values.has(path);
  }

  /** `value` must be of the field's kind; what decoding, flags and defaults give is. */
  set(path: FieldPath, value: unknown, origin: Origin): void {
    this.#clear(path);
    this.#values.set(path, value);
    this.#origins.set(path, origin);
    const struct = optionalStructs.find((name) => path.startsWith(`${name}.`));
    if (struct !== undefined) this.#structs.add(struct);
  }

  /** Adds or replaces one key of a field that is a map. */
  setKey(path: FieldPath, key: string, value: unknown, origin: Origin): void {
    const map = (this.#values.get(path) ?? {}) as Readonly<Record<string, unknown>>;
    this.#values.set(path, Object.fromEntries([...Object.entries(map), [key, value]]));
    this.#origins.set(keyPath(path, key), origin);
  }

  forgetKey(path: FieldPath, key: string): void {
    const map = (this.#values.get(path) ?? {}) as Readonly<Record<string, unknown>>;
    this.#values.set(path, Object.fromEntries(Object.entries(map).filter(([name]) => name !== key)));
    this.#origins.delete(keyPath(path, key));
  }

  /** Back to "not set", for the field or for every field below the struct. */
  forget(path: string): void {
    for (const name of fieldPaths) if (name === path || name.startsWith(`${path}.`)) this.#clear(name);
    for (const name of optionalStructs) if (name === path) this.#structs.delete(name);
  }

  #clear(path: FieldPath): void {
    const value = this.#values.get(path);
    if (typeof value === "object" && value !== null) {
      for (const key of Object.keys(value)) this.#origins.delete(keyPath(path, key));
    }
    this.#values.delete(path);
    this.#origins.delete(path);
  }

  /** Records that a struct is present, even if nothing is in it. */
  markPresent(struct: string): void {
    for (const name of optionalStructs) if (name === struct) this.#structs.add(name);
  }

  isPresent(struct: StructPath): boolean {
    return this.#structs.has(struct);
  }

  originOf(path: string): Origin | undefined {
    return this.#origins.get(path);
  }

  origins(): Record<string, Origin> {
    return Object.fromEntries(this.#origins);
  }

  /** A field that Go cannot tell from one that was never set. */
  isUnset(path: FieldPath): boolean {
    const { pointer, kind } = specOf(path);
    const value = this.#values.get(path);
    return value === undefined || (!pointer && !Array.isArray(value) && value === kind.zero);
  }
}
