import { goQuote } from "../base/index.ts";

/** Something wrong with an object that a person wrote, in the words the Kubernetes API uses. */
export interface Problem {
  /** A warning does not keep the object from being used. */
  readonly severity: "error" | "warning";
  /** What is wrong in a word; undefined for what the API has no word for. */
  readonly kind?: ProblemKind;
  /** Such as `spec.containers[0].image`; empty when it is about the whole document. */
  readonly field: string;
  /** Such as `Invalid value: "x": must be a number`. */
  readonly message: string;
  /** Where in the text it was found, both counted from 1. */
  readonly position?: Position;
}

export type ProblemKind =
  | "required"
  | "invalid"
  | "unsupported"
  | "duplicate"
  | "forbidden"
  | "notFound"
  | "tooLong"
  | "tooMany";

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** `spec.containers[0].image: Required value (line 7, column 5)` */
export function describeProblem({ field, message, position }: Problem): string {
  const where = position === undefined ? "" : ` (line ${position.line}, column ${position.column})`;
  return `${field === "" ? "" : `${field}: `}${message}${where}`;
}

export function isError(problem: Problem): boolean {
  return problem.severity === "error";
}

/** Collects the problems of one object; every check adds to it and goes on. */
export class ProblemList {
  readonly #problems: Problem[] = [];

  get problems(): readonly Problem[] {
    return this.#problems;
  }

  get length(): number {
    return this.#problems.length;
  }

  add(problem: Problem): void {
    this.#problems.push(problem);
  }

  warn(field: string, message: string): void {
    this.#problems.push({ severity: "warning", field, message });
  }

  required(field: string, detail = ""): void {
    this.#error("required", field, `Required value${detail === "" ? "" : `: ${detail}`}`);
  }

  invalid(field: string, found: unknown, detail: string): void {
    this.#error("invalid", field, `Invalid value: ${show(found)}: ${detail}`);
  }

  /** The found value may be secret. */
  invalidHidden(field: string, detail: string): void {
    this.#error("invalid", field, `Invalid value: ${detail}`);
  }

  /** One problem per detail; none when there is no detail. */
  invalidEach(field: string, found: unknown, details: readonly string[]): void {
    for (const detail of details) this.invalid(field, found, detail);
  }

  unsupported(field: string, found: unknown, supported: readonly string[]): void {
    this.#error(
      "unsupported",
      field,
      `Unsupported value: ${show(found)}: supported values: ${supported.map((value) => goQuote(value)).join(", ")}`,
    );
  }

  duplicate(field: string, found: unknown): void {
    this.#error("duplicate", field, `Duplicate value: ${show(found)}`);
  }

  forbidden(field: string, detail: string): void {
    this.#error("forbidden", field, `Forbidden: ${detail}`);
  }

  notFound(field: string, found: unknown, detail = ""): void {
    this.#error("notFound", field, `Not found: ${show(found)}${detail === "" ? "" : `: ${detail}`}`);
  }

  tooLong(field: string, maxBytes: number): void {
    this.#error("tooLong", field, `Too long: may not be more than ${maxBytes} bytes`);
  }

  tooMany(field: string, maxItems: number): void {
    this.#error("tooMany", field, `Too many: must have at most ${maxItems} items`);
  }

  #error(kind: ProblemKind, field: string, message: string): void {
    this.#problems.push({ severity: "error", kind, field, message });
  }
}

const longestShown = 256;

/** A found value for a message, cut when it is long. */
export function show(found: unknown): string {
  if (typeof found === "string")
    return found.length > longestShown ? `${goQuote(found.slice(0, longestShown))}...` : goQuote(found);
  if (found === undefined) return "null";
  if (typeof found === "bigint") return String(found);
  const text = JSON.stringify(found, (_, value: unknown) => (typeof value === "bigint" ? Number(value) : value));
  return text.length > longestShown ? `${text.slice(0, longestShown)}...` : text;
}
