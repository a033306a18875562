/** Reads the fields of a decoded document by name and type, collecting what is wrong instead of stopping at it. */
export class FieldReader {
  readonly path: string;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #problems: string[];
  readonly #known = new Set<string>();

  private constructor(fields: Readonly<Record<string, unknown>>, path: string, problems: string[]) {
    this.#fields = fields;
    this.path = path;
    this.#problems = problems;
  }

  static of(value: unknown, path: string, problems: string[]): FieldReader {
    if (isObject(value)) return new FieldReader(value, path, problems);
    problems.push(`${path === "" ? "the document" : path}: found ${kindOf(value)}, want an object`);
    return new FieldReader({}, path, problems);
  }

  at(field: string): string {
    return this.path === "" ? field : `${this.path}.${field}`;
  }

  /** True when the field is there and not null. */
  has(field: string): boolean {
    return this.value(field) !== undefined;
  }

  value(field: string): unknown {
    this.#known.add(field);
    return this.#fields[field] ?? undefined;
  }

  string(field: string): string {
    return this.#typed(field, "a string", (value) => typeof value === "string", "");
  }

  boolean(field: string): boolean {
    return this.#typed(field, "a boolean", (value) => typeof value === "boolean", false);
  }

  number(field: string): number {
    return this.#typed(field, "a number", (value) => typeof value === "number", 0);
  }

  list(field: string): readonly unknown[] {
    return this.#typed<readonly unknown[]>(field, "a list", (value) => Array.isArray(value), []);
  }

  object(field: string): FieldReader {
    return FieldReader.of(this.value(field) ?? {}, this.at(field), this.#problems);
  }

  objects(field: string): readonly FieldReader[] {
    return this.list(field).map((item, index) => FieldReader.of(item, `${this.at(field)}[${index}]`, this.#problems));
  }

  names(): readonly string[] {
    return Object.keys(this.#fields);
  }

  strings(field: string): readonly string[] {
    const isStrings = (value: unknown): value is readonly string[] =>
      Array.isArray(value) && value.every((item) => typeof item === "string");
    return this.#typed<readonly string[]>(field, "a list of strings", isStrings, []);
  }

  /** Call last: names every field that was never asked for. */
  refuseOthers(): void {
    for (const field of Object.keys(this.#fields)) {
      if (!this.#known.has(field)) this.#problems.push(`${this.at(field)}: unknown field`);
    }
  }

  #typed<Value>(field: string, want: string, fits: (value: unknown) => value is Value, absent: Value): Value {
    const value = this.value(field);
    if (value === undefined) return absent;
    if (fits(value)) return value;
    const problem = `${this.at(field)}: found ${kindOf(value)}, want ${want}`;
    if (!this.#problems.includes(problem)) this.#problems.push(problem);
    return absent;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Names the kind only: the value itself may be a secret. */
function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  return Array.isArray(value) ? "a list" : `${/^[aeiou]/.test(typeof value) ? "an" : "a"} ${typeof value}`;
}
