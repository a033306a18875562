import { table } from "../base/index.ts";
import { schemaTable } from "./kube/gen/schema.ts";
import { closestOf } from "./manifest-spelling.ts";
import type { ProblemList } from "./problem.ts";
import { tryParseQuantity } from "./quantity.ts";

interface Field {
  readonly type: string;
  readonly required: boolean;
}

// Values that must not end up in a log or an event.
const mayHoldSecret = /^(?:data|stringData|binaryData)\[|\.env\[\d+\]\.value$|\.httpHeaders\[\d+\]\.value$/;

const parsedTypes = new Map<string, ReadonlyMap<string, Field>>();

function fieldsOf(type: string): ReadonlyMap<string, Field> {
  const known = parsedTypes.get(type);
  if (known !== undefined) return known;
  const fields = new Map<string, Field>();
  for (const entry of (schemaTable[type] ?? "").split(" ")) {
    const [name = "", fieldType = ""] = entry.split(":");
    const required = name.endsWith("!");
    fields.set(required ? name.slice(0, -1) : name, { type: fieldType, required });
  }
  parsedTypes.set(type, fields);
  return fields;
}

/**
 * Turns plain data into an object of a Kubernetes type: every value of the wrong type is reported as an error, every
 * unknown field as a warning and left out. Null counts as absent. Required fields that are missing get the zero value
 * of their type, so that the result is what its TypeScript type says even before it is validated. The result is frozen.
 */
export function decodeObject(value: unknown, type: string, path: string, problems: ProblemList): unknown {
  const found = isPlainObject(value) ? value : {};
  if (!isPlainObject(value)) problems.invalid(path, value, `must be an object, found ${kindOf(value)}`);
  const fields = fieldsOf(type);
  const result: [string, unknown][] = [];
  for (const [key, item] of Object.entries(found)) {
    const field = fields.get(key);
    const fieldPath = path === "" ? key : `${path}.${key}`;
    if (field === undefined) {
      const closest = closestOf(key, fields.keys());
      const hint = closest === undefined ? "" : `; did you mean "${closest}"?`;
      problems.add({ severity: "warning", field: fieldPath, message: `Unknown field, ignored${hint}` });
      continue;
    }
    if (item === null || item === undefined) continue;
    const decoded = decodeValue(item, field.type, fieldPath, problems);
    if (decoded !== undefined) result.push([key, decoded]);
  }
  const present = new Set(result.map(([key]) => key));
  for (const [key, { type: fieldType, required }] of fields) {
    if (required && !present.has(key)) result.push([key, zeroOf(fieldType)]);
  }
  return Object.freeze(Object.fromEntries(result));
}

function decodeValue(value: unknown, type: string, path: string, problems: ProblemList): unknown {
  if (type.startsWith("[]")) return decodeList(value, type.slice(2), path, problems);
  if (type.startsWith("{}")) return decodeMap(value, type.slice(2), path, problems);
  const decodeScalar = scalarDecoders[type];
  if (decodeScalar === undefined) return decodeObject(value, type, path, problems);
  const outcome = decodeScalar(value);
  if ("wanted" in outcome) {
    if (mayHoldSecret.test(path)) problems.invalidHidden(path, outcome.wanted);
    else problems.invalid(path, value, outcome.wanted);
    return undefined;
  }
  return outcome.value;
}

function decodeList(value: unknown, itemType: string, path: string, problems: ProblemList): unknown {
  if (!Array.isArray(value)) {
    problems.invalid(path, value, `must be a list, found ${kindOf(value)}`);
    return undefined;
  }
  const items: readonly unknown[] = value;
  return Object.freeze(
    items.map((item, index) =>
      item === null ? zeroOf(itemType) : decodeValue(item, itemType, `${path}[${index}]`, problems),
    ),
  );
}

function decodeMap(value: unknown, itemType: string, path: string, problems: ProblemList): unknown {
  if (!isPlainObject(value)) {
    problems.invalid(path, value, `must be a map, found ${kindOf(value)}`);
    return undefined;
  }
  const entries = Object.entries(value).map(([key, item]) => [
    key,
    item === null ? zeroOf(itemType) : decodeValue(item, itemType, `${path}[${key}]`, problems),
  ]);
  return Object.freeze(Object.fromEntries(entries));
}

/** What an absent value of this type is in the API. */
function zeroOf(type: string): unknown {
  if (type.startsWith("[]")) return Object.freeze([]);
  if (type.startsWith("{}")) return Object.freeze({});
  switch (type) {
    case "string":
    case "bytes":
    case "time":
      return "";
    case "quantity":
      return "0";
    case "int32":
    case "int64":
    case "int-or-string":
      return 0;
    case "boolean":
      return false;
    case "any":
      return undefined;
  }
  const required = [...fieldsOf(type)].filter(([, field]) => field.required);
  return Object.freeze(Object.fromEntries(required.map(([key, field]) => [key, zeroOf(field.type)])));
}

type Outcome = { readonly value: unknown } | { readonly wanted: string };

const scalarDecoders: Readonly<Record<string, (value: unknown) => Outcome>> = table({
  string: (value) => {
    if (typeof value === "string") return { value };
    const hint = isPlainObject(value) || Array.isArray(value) ? "" : "; put it in quotes";
    return { wanted: `must be a string, found ${kindOf(value)}${hint}` };
  },
  boolean: (value) =>
    typeof value === "boolean" ? { value } : { wanted: `must be true or false, found ${kindOf(value)}` },
  int32: (value) => integer(value, -(2 ** 31), 2 ** 31 - 1),
  int64: (value) => integer(value, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  "int-or-string": (value) => {
    if (typeof value === "string") return { value };
    const outcome = integer(value, -(2 ** 31), 2 ** 31 - 1);
    return "value" in outcome ? outcome : { wanted: `must be an integer or a string, found ${kindOf(value)}` };
  },
  quantity,
  time: (value) =>
    typeof value === "string" && rfc3339.test(value) && !Number.isNaN(Date.parse(value))
      ? { value }
      : { wanted: `must be a time such as "2026-01-31T12:00:00Z", found ${kindOf(value)}` },
  bytes: (value) =>
    typeof value === "string" && isBase64(value.replace(/[\r\n]/g, ""))
      ? { value: value.replace(/[\r\n]/g, "") }
      : { wanted: `must be base64, found ${kindOf(value)}` },
  any: (value) => ({ value: plain(value) }),
});

const rfc3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;
const longestQuantity = 128;

function integer(value: unknown, min: number, max: number): Outcome {
  const isInteger = typeof value === "bigint" || (typeof value === "number" && Number.isInteger(value));
  if (!isInteger) {
    const isNumeric = typeof value === "string" && /^[-+]?\d+$/.test(value);
    return { wanted: `must be an integer, found ${kindOf(value)}${isNumeric ? "; leave out the quotes" : ""}` };
  }
  if (value < min || value > max) return { wanted: `must be between ${min} and ${max}, inclusive` };
  return { value: Number(value) };
}

function quantity(value: unknown): Outcome {
  const isNumber = typeof value === "bigint" || (typeof value === "number" && Number.isFinite(value));
  const text = isNumber ? String(value) : value;
  if (typeof text !== "string") return { wanted: `must be a quantity such as 500m or 1Gi, found ${kindOf(value)}` };
  if (text.length <= longestQuantity && tryParseQuantity(text) !== undefined) return { value: text };
  return {
    wanted:
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$', such as 500m or 1Gi",
  };
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

/** Data of any shape, frozen, with whole numbers as numbers. */
function plain(value: unknown): unknown {
  if (typeof value === "bigint") return Number(value);
  if (Array.isArray(value)) return Object.freeze(value.map(plain));
  if (!isPlainObject(value)) return value;
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)])));
}

export function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return "nothing";
  if (Array.isArray(value)) return "a list";
  switch (typeof value) {
    case "bigint":
    case "number":
      return "a number";
    case "boolean":
      return "a boolean";
    case "string":
      return "a string";
    default:
      return "a map";
  }
}
