import { fnv1a32 } from "../../ground/model/index.ts";

/** The text of a Go value over which the kubelet computes checksums: fields with their types, maps by their keys. */
export function goStruct(fields: Readonly<Record<string, readonly [type: string, value: string | number]>>): string {
  return `{${Object.entries(fields)
    .map(([name, [type, value]]) => `${name}:(${type})${value}`)
    .join(" ")}}`;
}

export function goMap(entries: Iterable<readonly [key: string | number, value: string]>): string {
  const sorted = [...entries].sort(([a], [b]) => compareKeys(a, b));
  return `map[${sorted.map(([key, value]) => `${key}:${value}`).join(" ")}]`;
}

export function goSlice(items: readonly (string | number)[]): string {
  return `[${items.join(" ")}]`;
}

function compareKeys(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

export function goChecksum(text: string): number {
  return fnv1a32(Buffer.from(text).toString("latin1"));
}

export type CheckpointObject = Readonly<Record<string, unknown>>;

export function asCheckpointObject(value: unknown, what: string): CheckpointObject {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as CheckpointObject;
  throw new Error(`${what} is ${JSON.stringify(value)?.slice(0, 40)}, wanted an object`);
}

/** A member, in whatever case its name is written: Go does not tell them apart either. */
export function memberOf(object: CheckpointObject, name: string): unknown {
  if (Object.hasOwn(object, name)) return object[name];
  const key = Object.keys(object).find((candidate) => candidate.toLowerCase() === name.toLowerCase());
  return key === undefined ? undefined : object[key];
}

export function textMember(object: CheckpointObject, name: string): string {
  const value = memberOf(object, name) ?? "";
  if (typeof value !== "string") throw new Error(`"${name}" is ${JSON.stringify(value).slice(0, 40)}, wanted a text`);
  return value;
}

/** Entries in the order in which Go writes a map. */
export function inGoOrder<Value>(entries: Iterable<readonly [string, Value]>): readonly (readonly [string, Value])[] {
  return [...entries].sort(([a], [b]) => compareKeys(a, b));
}
