import { formatDuration, millisOf } from "../../base/index.ts";
import { canonicalQuantity, type Taint, tryParseQuantity } from "../../model/index.ts";
import { describeTree, type Tree } from "../files/tree.ts";
import type { MemoryReservation, ShutdownGracePeriodByPodPriority, VModuleItem } from "../kubelet-configuration.ts";
import { durationOf } from "../text/duration-text.ts";
import { TextError } from "../text/go-text.ts";

/** How a value of a configuration file is read, and written again for /configz. */
export interface FieldKind<Value> {
  /** "an integer", as in "wanted an integer". */
  readonly wanted: string;
  /** What a name gets appended in KubeletConfiguration to show its unit. */
  readonly unit?: "Ms";
  /** The value Go starts from; a field that is not a pointer cannot tell it from "not set". */
  readonly zero: Value;
  /** Undefined after reporting what is wrong. */
  decode(tree: Tree, path: string, report: Report): Value | undefined;
  encode(value: Value): unknown;
}

/** Notes a finding about the field at `path`, written at `tree`. */
export interface Report {
  wrong(path: string, tree: Tree, message: string): void;
  unknown(path: string, name: string, at: Tree["at"], known: readonly string[]): void;
}

export const boolField: FieldKind<boolean> = {
  wanted: "true or false",
  zero: false,
  decode: (tree, path, report) => (tree.kind === "bool" ? tree.value : mismatch(boolField, tree, path, report)),
  encode: same,
};

export const int32Field = integerField("an integer of 32 bits", -(2n ** 31n), 2n ** 31n - 1n);
export const int64Field = integerField("an integer", -(2n ** 63n), 2n ** 63n - 1n);
export const uint32Field = integerField("an integer from 0 to 4294967295", 0n, 2n ** 32n - 1n);

export const floatField: FieldKind<number> = {
  wanted: "a number",
  zero: 0,
  decode: (tree, path, report) =>
    tree.kind === "float" || tree.kind === "int" ? Number(tree.value) : mismatch(floatField, tree, path, report),
  encode: same,
};

export const stringField: FieldKind<string> = {
  wanted: "a string",
  zero: "",
  decode: (tree, path, report) => (tree.kind === "string" ? tree.value : mismatch(stringField, tree, path, report)),
  encode: same,
};

export const durationField: FieldKind<number> = {
  wanted: 'a duration such as "1m30s"',
  unit: "Ms",
  zero: 0,
  decode(tree, path, report) {
    if (tree.kind !== "string") return mismatch(durationField, tree, path, report);
    try {
      return durationOf(tree.value);
    } catch (error) {
      if (!(error instanceof TextError)) throw error;
      report.wrong(path, tree, `${error.message}; wanted ${durationField.wanted}`);
      return undefined;
    }
  },
  encode: formatDuration,
};

/** A duration, or for old files a number of nanoseconds. */
export const durationOrNanosField: FieldKind<number> = {
  ...durationField,
  decode: (tree, path, report) =>
    tree.kind === "int" ? millisOf(tree.value) : durationField.decode(tree, path, report),
};

export const quantityField: FieldKind<string> = {
  wanted: "a quantity such as 10Mi",
  zero: "0",
  decode(tree, path, report) {
    const text =
      tree.kind === "string" ? tree.value : tree.kind === "int" || tree.kind === "float" ? `${tree.value}` : "";
    return tryParseQuantity(text) === undefined ? mismatch(quantityField, tree, path, report) : text;
  },
  encode: canonicalQuantity,
};

export const stringsField = listField(stringField, "a list of strings");
export const stringMapField = mapField(stringField, "a map of strings");
export const boolMapField = mapField(boolField, "a map of booleans");
export const headersField = mapField(stringsField, "a map of lists of strings");

export const taintsField = listField(
  recordField<Taint>("a taint", {
    key: stringField,
    value: stringField,
    effect: stringField,
    timeAdded: stringField,
  }),
  "a list of taints",
);

export const memoryReservationsField = listField(
  recordField<MemoryReservation>("a memory reservation", {
    numaNode: int32Field,
    limits: mapField(quantityField, "a map of quantities"),
  }),
  "a list of memory reservations",
);

export const priorityPeriodsField = listField(
  recordField<ShutdownGracePeriodByPodPriority>("a priority and a period", {
    priority: int32Field,
    shutdownGracePeriodSeconds: int64Field,
  }),
  "a list of priorities and periods",
);

export const vmoduleField = listField(
  recordField<VModuleItem>("a file pattern and a verbosity", { filePattern: stringField, verbosity: uint32Field }),
  "a list of file patterns and verbosities",
);

function integerField(wanted: string, smallest: bigint, largest: bigint): FieldKind<number> {
  const kind: FieldKind<number> = {
    wanted,
    zero: 0,
    decode(tree, path, report) {
      const value = integerOf(tree);
      if (value === undefined || value < smallest || value > largest) return mismatch(kind, tree, path, report);
      if (value > Number.MAX_SAFE_INTEGER || value < Number.MIN_SAFE_INTEGER) {
        report.wrong(path, tree, `${value} is too large, the largest number supported is ${Number.MAX_SAFE_INTEGER}`);
        return undefined;
      }
      return Number(value);
    },
    encode: same,
  };
  return kind;
}

/** JSON has one kind of number: 5.0 is as good an integer as 5. */
function integerOf(tree: Tree): bigint | undefined {
  if (tree.kind === "int") return tree.value;
  return tree.kind === "float" && Number.isInteger(tree.value) ? BigInt(tree.value) : undefined;
}

function listField<Item>(item: FieldKind<Item>, wanted: string): FieldKind<readonly Item[]> {
  const kind: FieldKind<readonly Item[]> = {
    wanted,
    zero: [],
    decode(tree, path, report) {
      if (tree.kind !== "list") return mismatch(kind, tree, path, report);
      const items = tree.items.map((element, index) =>
        element.kind === "null" ? item.zero : item.decode(element, `${path}[${index}]`, report),
      );
      return items.filter((element) => element !== undefined);
    },
    encode: (items) => items.map(item.encode),
  };
  return kind;
}

function mapField<Item>(item: FieldKind<Item>, wanted: string): FieldKind<Readonly<Record<string, Item>>> {
  const kind: FieldKind<Readonly<Record<string, Item>>> = {
    wanted,
    zero: {},
    decode(tree, path, report) {
      if (tree.kind !== "map") return mismatch(kind, tree, path, report);
      const entries = tree.entries.flatMap(({ key, value }) => {
        const decoded = value.kind === "null" ? item.zero : item.decode(value, keyPath(path, key), report);
        return decoded === undefined ? [] : [[key, decoded] as const];
      });
      return Object.fromEntries(entries);
    },
    encode: (map) => Object.fromEntries(Object.entries(map).map(([key, value]) => [key, item.encode(value)])),
  };
  return kind;
}

type MemberKinds<Value> = { readonly [Key in keyof Value]-?: FieldKind<NonNullable<Value[Key]>> };

function recordField<Value extends object>(wanted: string, members: MemberKinds<Value>): FieldKind<Value> {
  const kinds = Object.entries(members) as [string, FieldKind<unknown>][];
  // These members are pointers or may be left out; the others are always written.
  const optional = new Set(["value", "timeAdded"]);
  const kind: FieldKind<Value> = {
    wanted,
    // Go fills absent members of a list entry with their zero.
    zero: Object.fromEntries(
      kinds.filter(([name]) => name !== "timeAdded").map(([name, { zero }]) => [name, zero]),
    ) as Value,
    decode(tree, path, report) {
      if (tree.kind !== "map") return mismatch(kind, tree, path, report);
      const values: [string, unknown][] = Object.entries(kind.zero);
      for (const { key, keyAt, value } of tree.entries) {
        const member = kinds.find(([name]) => name === key)?.[1];
        if (member === undefined) report.unknown(path, key, keyAt, Object.keys(members));
        else if (value.kind !== "null") values.push([key, member.decode(value, `${path}.${key}`, report)]);
      }
      return Object.fromEntries(values) as Value;
    },
    encode: (value) =>
      Object.fromEntries(
        Object.entries(value)
          .filter(([name, member]) => !(optional.has(name) && member === ""))
          .map(([name, member]) => [name, (members as Record<string, FieldKind<unknown>>)[name]?.encode(member)]),
      ),
  };
  return kind;
}

/** The path of one key of a map: evictionHard["memory.available"]. */
export function keyPath(path: string, key: string): string {
  return `${path}[${JSON.stringify(key)}]`;
}

function mismatch(kind: FieldKind<never> | FieldKind<unknown>, tree: Tree, path: string, report: Report): undefined {
  report.wrong(path, tree, `wanted ${kind.wanted}, found ${describeTree(tree)}`);
  return undefined;
}

function same<Value>(value: Value): Value {
  return value;
}
