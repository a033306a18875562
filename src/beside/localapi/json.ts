/** JSON objects as they come over the wire; what is in them is checked where it is used. */
export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object under `key`, or an empty one. */
export function objectAt(value: unknown, ...path: readonly string[]): JsonObject {
  let found: unknown = value;
  for (const key of path) found = isObject(found) ? found[key] : undefined;
  return isObject(found) ? found : {};
}

export function stringAt(value: unknown, ...path: readonly string[]): string {
  const found = objectAt(value, ...path.slice(0, -1))[path.at(-1) ?? ""];
  return typeof found === "string" ? found : "";
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = objectAt(value, ...path.slice(0, -1))[path.at(-1) ?? ""];
  return Array.isArray(found) ? found : [];
}
