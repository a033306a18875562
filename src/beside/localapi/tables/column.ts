import { table } from "../../../ground/base/index.ts";
import { canonicalQuantity } from "../../../ground/model/index.ts";
import { listAt, objectAt, stringAt } from "../json.ts";
import type { ApiObject } from "../object.ts";
import { age } from "./age.ts";

/** A column of what `kubectl get` shows. */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "boolean" | "date";
  /** Shown only when the client wants it wide. */
  readonly wide: boolean;
  read(object: ApiObject, nowMs: number): string | number | boolean;
}

export function column(name: string, read: Column["read"], options: Partial<Column> = {}): Column {
  return { name, type: "string", wide: false, read, ...options };
}

/** A column that only wide output shows. */
export function wide(name: string, read: Column["read"]): Column {
  return column(name, read, { wide: true });
}

export const nameColumn: Column = column("Name", ({ metadata }) => metadata.name ?? "");
export const ageColumn: Column = column("Age", ({ metadata }, nowMs) => age(metadata.creationTimestamp, nowMs));

/** The text at a place in the object. */
export const textOf =
  (...path: readonly string[]) =>
  (object: ApiObject): string =>
    stringAt(object, ...path);

export const textOr =
  (fallback: string, ...path: readonly string[]) =>
  (object: ApiObject): string =>
    stringAt(object, ...path) || fallback;

export const numberOf =
  (...path: readonly string[]) =>
  (object: ApiObject): number =>
    numberAt(object, ...path);

export function numberAt(object: unknown, ...path: readonly string[]): number {
  const found = objectAt(object, ...path.slice(0, -1))[path.at(-1) ?? ""];
  return typeof found === "number" ? found : 0;
}

export function integer(name: string, read: (object: ApiObject, nowMs: number) => number): Column {
  return column(name, read, { type: "integer" });
}

export function countOf(...path: readonly string[]): (object: ApiObject) => number {
  return (object) => Object.keys(objectAt(object, ...path)).length;
}

const modeNames: Readonly<Record<string, string>> = table({
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
});

export const accessModes =
  (...path: readonly string[]) =>
  (object: ApiObject): string =>
    listAt(object, ...path)
      .map((mode) => modeNames[String(mode)] ?? String(mode))
      .join(",");

export const quantityOf =
  (...path: readonly string[]) =>
  (object: ApiObject): string =>
    canonicalQuantity(stringAt(object, ...path));

/** A selector or other map as `a=b,c=d`. */
export function labelsText(labels: unknown): string {
  const pairs = Object.entries(objectAt({ labels }, "labels")).map(([key, value]) => `${key}=${String(value)}`);
  return pairs.length === 0 ? "<none>" : pairs.sort().join(",");
}
