import {
  boolKind,
  durationKind,
  equalsMapKind,
  type FlagKind,
  int32Kind,
  int64Kind,
  stringKind,
  stringsKind,
} from "../flags/flag-kinds.ts";
import {
  boolField,
  durationField,
  type FieldKind,
  int32Field,
  int64Field,
  stringField,
  stringMapField,
  stringsField,
} from "./field-kinds.ts";

/** One line of the table from which defaults, flags, decoding, simple checks, help and documentation come. */
export interface FieldSpec<Value> {
  readonly kind: FieldKind<NonNullable<Value>>;
  /** With a configuration file. Undefined: unset means something of its own. */
  readonly default: Value;
  /** Without one, where it differs: what flag-only kubelets have always had. */
  readonly legacyDefault?: Value;
  /** Keeps an explicit zero; in the other fields zero is "not set" and becomes the default. */
  readonly pointer: boolean;
  /** A relative path in the --config file starts at the file's directory. */
  readonly isPath: boolean;
  readonly flag?: FieldFlag<NonNullable<Value>>;
  readonly check?: FieldCheck<NonNullable<Value>>;
  readonly help: string;
}

export interface FieldFlag<Value> {
  readonly name: string;
  readonly shorthand?: string;
  readonly kind: FlagKind<Value>;
  /** Flags for fields of the file are deprecated, with few exceptions. */
  readonly deprecated: boolean;
  /** The flag replaces what the files say, or is joined with it. */
  readonly join: "replace" | "append" | "merge";
}

/** A rule that looks at this one value. */
export interface FieldCheck<Value> {
  /** Continues the sentence "invalid configuration: field value …". */
  readonly rule: string;
  ok(value: Value): boolean;
}

interface Options<Value> {
  readonly flag?: string;
  readonly shorthand?: string;
  readonly flagKind?: FlagKind<Value>;
  /** Keeps the flag from being deprecated. */
  readonly flagStays?: true;
  readonly flagJoins?: "append" | "merge";
  readonly legacy?: Value;
  readonly pointer?: true;
  readonly isPath?: true;
  readonly check?: FieldCheck<Value>;
}

/** A field with a default. */
export function field<Value>(
  kind: FieldKind<Value>,
  flagKind: FlagKind<Value> | undefined,
  fallback: Value,
  help: string,
  options: Options<Value> = {},
): FieldSpec<Value> {
  return { ...common(kind, flagKind, help, options), default: fallback };
}

/** A pointer without default: unset stays undefined. */
export function unset<Value>(
  kind: FieldKind<Value>,
  help: string,
  options: Options<Value> = {},
): FieldSpec<Value | undefined> {
  const { legacyDefault: _, ...rest } = common(kind, undefined, help, { ...options, pointer: true });
  return { ...rest, kind: kind as FieldKind<NonNullable<Value>>, default: undefined } as FieldSpec<Value | undefined>;
}

function common<Value>(
  kind: FieldKind<Value>,
  flagKind: FlagKind<Value> | undefined,
  help: string,
  options: Options<Value>,
): Omit<FieldSpec<Value>, "default"> {
  const usedFlagKind = options.flagKind ?? flagKind;
  return {
    kind: kind as FieldKind<NonNullable<Value>>,
    pointer: options.pointer ?? false,
    isPath: options.isPath ?? false,
    help,
    ...(options.legacy === undefined ? {} : { legacyDefault: options.legacy }),
    ...(options.check === undefined ? {} : { check: options.check as FieldCheck<NonNullable<Value>> }),
    ...(options.flag === undefined || usedFlagKind === undefined
      ? {}
      : {
          flag: {
            name: options.flag,
            ...(options.shorthand === undefined ? {} : { shorthand: options.shorthand }),
            kind: usedFlagKind as FlagKind<NonNullable<Value>>,
            deprecated: options.flagStays !== true,
            join: options.flagJoins ?? "replace",
          },
        }),
  };
}

type Builder<Value> = (fallback: Value, help: string, options?: Options<Value>) => FieldSpec<Value>;

function builder<Value>(kind: FieldKind<Value>, flagKind?: FlagKind<Value>): Builder<Value> {
  return (fallback, help, options) => field(kind, flagKind, fallback, help, options);
}

export const bool = builder(boolField, boolKind);
export const int32 = builder(int32Field, int32Kind);
export const int64 = builder(int64Field, int64Kind);
export const text = builder(stringField, stringKind);
export const duration = builder(durationField, durationKind);
export const strings = builder(stringsField, stringsKind);
export const stringMap = builder(stringMapField, equalsMapKind);

export const notNegative: FieldCheck<number> = { rule: "must not be a negative number", ok: (value) => value >= 0 };

export function between(smallest: number, largest: number): FieldCheck<number> {
  return {
    rule: `must be between ${smallest} and ${largest}, inclusive`,
    ok: (value) => value >= smallest && value <= largest,
  };
}

export function greaterThan(bound: number): FieldCheck<number> {
  return { rule: `must be greater than ${bound}`, ok: (value) => value > bound };
}

export function atLeast(bound: number, rule: string): FieldCheck<number> {
  return { rule, ok: (value) => value >= bound };
}

export function oneOf(words: readonly string[]): FieldCheck<string> {
  return {
    rule: `must be one of: ${words.map((word) => JSON.stringify(word)).join(", ")}`,
    ok: (value) => words.includes(value),
  };
}
