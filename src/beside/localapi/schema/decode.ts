import { canonicalQuantity, tryParseQuantity } from "../../../ground/model/index.ts";
import { isObject } from "../json.ts";
import { type FieldType, schemaOf } from "./schema.ts";
import { shownTimes } from "./shown-times.ts";

/** What a value of a type became when it was read: unknown fields left out, quantities and times in their usual form. */
export interface Decoded {
  readonly value: unknown;
  /** Fields that the type does not have, such as `spec.foo`. */
  readonly unknownFields: readonly string[];
}

export class DecodeError extends Error {
  override readonly name = "DecodeError";
}

export function decode(value: unknown, type: string): Decoded {
  const unknownFields: string[] = [];
  const decoded = decodeValue(value, { form: "object", type }, "", unknownFields);
  return { value: decoded, unknownFields };
}

function decodeValue(value: unknown, type: FieldType, path: string, unknownFields: string[]): unknown {
  switch (type.form) {
    case "scalar":
      return decodeScalar(value, type.name, path);
    case "list":
      if (!Array.isArray(value)) throw mismatch(value, "a list", path);
      return value.map((item, index) => decodeValue(item, type.of, `${path}[${index}]`, unknownFields));
    case "map":
      if (!isObject(value)) throw mismatch(value, "an object", path);
      return Object.fromEntries(
        Object.entries(value)
          .filter(([, item]) => item !== null)
          .map(([key, item]) => [key, decodeValue(item, type.of, `${path}.${key}`, unknownFields)]),
      );
    case "object":
      return decodeFields(value, type.type, path, unknownFields);
  }
}

function decodeFields(value: unknown, type: string, path: string, unknownFields: string[]): unknown {
  if (!isObject(value)) throw mismatch(value, "an object", path);
  if (decodedAs.get(value) === type && Object.isFrozen(value)) return value;
  const schema = schemaOf(type);
  if (schema === undefined) return value;
  const fields: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`;
    const field = schema.fields.get(key);
    if (field === undefined) unknownFields.push(at);
    else if (item !== null && item !== undefined) {
      const decoded = decodeValue(item, field.type, at, unknownFields);
      if (field.required || !isEmpty(decoded, field.type)) fields[key] = decoded;
    }
  }
  // A list that must be there is at least empty to whoever looks at the object.
  for (const list of requiredLists(type)) fields[list] ??= [];
  for (const time of shownTimes[type] ?? []) fields[time] ??= null;
  decodedAs.set(fields, type);
  return fields;
}

/**
 * What was read before, by its type. A patch leaves most of an object as it was stored, which is frozen to its last
 * field and need not be read again.
 */
const decodedAs = new WeakMap<object, string>();

const requiredListsOf = new Map<string, readonly string[]>();

function requiredLists(type: string): readonly string[] {
  let lists = requiredListsOf.get(type);
  if (lists === undefined) {
    const fields = [...(schemaOf(type)?.fields ?? [])];
    lists = fields.filter(([, field]) => field.required && field.type.form === "list").map(([name]) => name);
    requiredListsOf.set(type, lists);
  }
  return lists;
}

/** Lists and maps that hold nothing are not stored, unless they must be there. */
function isEmpty(value: unknown, type: FieldType): boolean {
  if (type.form === "list") return Array.isArray(value) && value.length === 0;
  return type.form === "map" && isObject(value) && Object.keys(value).length === 0;
}

function decodeScalar(value: unknown, name: string, path: string): unknown {
  switch (name) {
    case "any":
      return value;
    case "boolean":
      if (typeof value !== "boolean") throw mismatch(value, "true or false", path);
      return value;
    case "int32":
    case "int64":
      if (typeof value !== "number" || !Number.isInteger(value)) throw mismatch(value, "a whole number", path);
      return value;
    case "number":
      if (typeof value !== "number") throw mismatch(value, "a number", path);
      return value;
    case "int-or-string":
      if (typeof value !== "string" && !Number.isInteger(value)) throw mismatch(value, "a whole number or text", path);
      return value;
    case "bytes":
      if (typeof value !== "string") throw mismatch(value, "text", path);
      return requireBase64(value);
    case "quantity": {
      const text = typeof value === "number" ? String(value) : value;
      if (typeof text !== "string" || text.length > longestQuantity || tryParseQuantity(text) === undefined) {
        throw mismatch(value, "a quantity such as 100m or 1Gi", path);
      }
      return canonicalQuantity(text);
    }
    case "time":
      return decodeTime(value, path).replace(/\.\d+Z$/, "Z");
    case "micro-time":
      // Upstream insists on six digits, and clients must hold to it.
      if (typeof value !== "string" || !/\.\d{6}(Z|[+-]\d\d:\d\d)$/.test(value)) {
        throw mismatch(value, "a time such as 2006-01-02T15:04:05.000000Z", path);
      }
      return decodeTime(value, path);
    default:
      if (typeof value !== "string") throw mismatch(value, "text", path);
      return value;
  }
}

/** More digits than 64 bits have, with all that may stand beside them; many more take long to compute with. */
const longestQuantity = 100;

function requireBase64(text: string): string {
  const legal = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?/.exec(text.replaceAll(/[\r\n]/g, ""));
  const length = legal?.[0].length ?? 0;
  if (length === text.replaceAll(/[\r\n]/g, "").length) return text;
  throw new DecodeError(`illegal base64 data at input byte ${length}`);
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/** In UTC, with six digits after the second. */
function decodeTime(value: unknown, path: string): string {
  const [, fraction = "", zone = ""] = typeof value === "string" ? (rfc3339.exec(value) ?? []) : [];
  const ms = typeof value === "string" && zone !== "" ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms)) throw mismatch(value, "a time such as 2006-01-02T15:04:05Z", path);
  const digits = fraction.slice(1, 7).padEnd(6, "0");
  return new Date(ms).toISOString().replace(/\.\d+Z$/, `.${digits}Z`);
}

function mismatch(value: unknown, wanted: string, path: string): DecodeError {
  const shown = JSON.stringify(value) ?? "nothing";
  return new DecodeError(`${path === "" ? "object" : path}: found ${shown.slice(0, 100)}, wanted ${wanted}`);
}
