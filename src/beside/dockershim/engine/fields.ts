// Reads answers of Docker, which are not ours: a field of another kind than expected counts as absent.

export type Fields = Readonly<Record<string, unknown>>;

const none: Fields = Object.freeze({});

export function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : none;
}

export function textIn(fields: Fields, name: string): string {
  const value = fields[name];
  return typeof value === "string" ? value : "";
}

/** Docker has whole numbers only. One that is none, or too large to be exact, is not what was meant. */
export function numberIn(fields: Fields, name: string): number {
  const value = fields[name];
  return typeof value === "number" && Number.isSafeInteger(value) ? value : 0;
}

export function flagIn(fields: Fields, name: string): boolean {
  return fields[name] === true;
}

export function objectIn(fields: Fields, name: string): Fields {
  return fieldsOf(fields[name]);
}

export function listIn(fields: Fields, name: string): readonly unknown[] {
  const value = fields[name];
  return Array.isArray(value) ? value : [];
}

export function textsIn(fields: Fields, name: string): readonly string[] {
  return listIn(fields, name).filter((item) => typeof item === "string");
}

/** Labels and the like. Without a prototype: the names are somebody else's. */
export function labelTable(fields: Fields, name: string): Readonly<Record<string, string>> {
  const table: Record<string, string> = Object.create(null);
  for (const [key, value] of Object.entries(objectIn(fields, name))) if (typeof value === "string") table[key] = value;
  return table;
}
