import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { messageOf, table } from "../../../ground/base/index.ts";
import { wireTable } from "../gen/wire.ts";
import type { JsonObject } from "../json.ts";
import { type FieldSchema, type FieldType, schemaOf } from "../schema/schema.ts";
import { badRequest, StatusError } from "../status-error.ts";

/** Precedes every object that is sent in protobuf. */
const mark = Buffer.from("k8s\0");

/** Reads an object in the form that typed clients, such as those of `kubectl create`, send; gives what they would have sent as JSON. */
export function readProtobuf(body: Buffer): JsonObject {
  if (!body.subarray(0, mark.length).equals(mark))
    throw badRequest("the body of the request is not a Kubernetes object");
  try {
    const { apiVersion, kind, raw } = readEnvelope(body.subarray(mark.length));
    const type = typeNamed(apiVersion, kind);
    if (type === undefined) throw unknownKind(apiVersion, kind);
    return { apiVersion, kind, ...readMessage(new BinaryReader(raw), raw.length, type) };
  } catch (error) {
    if (error instanceof StatusError) throw error;
    throw badRequest(`the body of the request is not protobuf: ${messageOf(error)}`);
  }
}

function unknownKind(apiVersion: string, kind: string): StatusError {
  return badRequest(
    `no kind "${kind}" is registered for version "${apiVersion}" in what this server reads as protobuf`,
  );
}

function readEnvelope(bytes: Uint8Array): { apiVersion: string; kind: string; raw: Uint8Array } {
  const envelope: { apiVersion: string; kind: string; raw: Uint8Array } = {
    apiVersion: "",
    kind: "",
    raw: Buffer.alloc(0),
  };
  forEachField(new BinaryReader(bytes), bytes.length, {
    1: (reader) =>
      forEachField(reader, reader.uint32() + reader.pos, {
        1: () => (envelope.apiVersion = reader.string()),
        2: () => (envelope.kind = reader.string()),
      }),
    2: (reader) => (envelope.raw = reader.bytes()),
  });
  return envelope;
}

/** Questions that the tables do not have, and what they are a part of. */
const readAs: Readonly<Record<string, string>> = table({
  "authorization.v1.SelfSubjectAccessReview": "authorization.v1.SubjectAccessReview",
  "authorization.v1.LocalSubjectAccessReview": "authorization.v1.SubjectAccessReview",
  // It asks without a word.
  "authentication.v1.SelfSubjectReview": "authentication.v1.TokenReview",
});

/** The type's name in the tables; options of requests belong to no group. */
function typeNamed(apiVersion: string, kind: string): string | undefined {
  const [group = "", version = apiVersion] = apiVersion.includes("/") ? apiVersion.split("/") : ["core"];
  const own = `${group.split(".")[0]}.${version}.${kind}`;
  return [readAs[own] ?? own, `meta.v1.${kind}`].find((name) => schemaOf(name) !== undefined);
}

type FieldReaders = Readonly<Record<number, (reader: BinaryReader) => unknown>>;

function forEachField(reader: BinaryReader, end: number, readers: FieldReaders): void {
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const read = readers[number];
    if (read === undefined) reader.skip(wireType, number);
    else read(reader);
  }
}

interface WireField {
  readonly name: string;
  readonly schema: FieldSchema;
  /** A zero means zero; of other fields it means that they were not set. */
  readonly keepsZero: boolean;
}

type Wire = ReadonlyMap<number, WireField | { readonly inlined: string }>;
const wires = new Map<string, Wire>();

/** The type's fields by number. `shown` is the type that has them in JSON, where inlined ones belong to the outer type. */
function wireOf(type: string, shown: string): Wire {
  const key = `${type} ${shown}`;
  let wire = wires.get(key);
  if (wire === undefined) {
    wire = parseWire(type, shown);
    wires.set(key, wire);
  }
  return wire;
}

function parseWire(type: string, shown: string): Wire {
  const fields = new Map<number, WireField | { readonly inlined: string }>();
  const schema = schemaOf(shown);
  for (const word of (wireTable[type] ?? "").split(" ")) {
    const [number = "", text = ""] = word.split(":");
    if (text.startsWith("=")) fields.set(Number(number), { inlined: text.slice(1) });
    else {
      const name = text.replace("?", "");
      const field = schema?.fields.get(name);
      if (field !== undefined)
        fields.set(Number(number), { name, schema: field, keepsZero: text.endsWith("?") || field.required });
    }
  }
  return fields;
}

function readMessage(reader: BinaryReader, end: number, type: string, shown = type): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  const wire = wireOf(type, shown);
  while (reader.pos < end) {
    const [number, wireType] = reader.tag();
    const field = wire.get(number);
    if (field === undefined) reader.skip(wireType, number);
    else if ("inlined" in field) {
      Object.assign(message, readMessage(reader, reader.uint32() + reader.pos, field.inlined, shown));
    } else readField(reader, wireType, field, message);
  }
  return message;
}

function readField(reader: BinaryReader, wireType: WireType, field: WireField, message: Record<string, unknown>): void {
  const { name, schema, keepsZero } = field;
  const { type } = schema;
  switch (type.form) {
    case "list": {
      const list = (message[name] ?? []) as unknown[];
      message[name] = list;
      if (wireType === WireType.LengthDelimited && isNumber(type.of)) {
        // Numbers may stand packed one after another.
        const end = reader.uint32() + reader.pos;
        while (reader.pos < end) list.push(readValue(reader, type.of));
      } else list.push(readValue(reader, type.of));
      break;
    }
    case "map": {
      const [key, value] = readEntry(reader, type.of);
      // Not as a literal's field, where one name would set the object's prototype.
      const map = (message[name] ?? {}) as object;
      Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
      message[name] = map;
      break;
    }
    default: {
      const value = readValue(reader, type);
      const isUnset = value === undefined || (!keepsZero && (value === "" || value === 0 || value === false));
      if (!isUnset) message[name] = value;
    }
  }
}

function isNumber(type: FieldType): boolean {
  return type.form === "scalar" && ["int32", "int64", "number", "boolean"].includes(type.name);
}

function readEntry(reader: BinaryReader, type: FieldType): [string, unknown] {
  let key = "";
  let value: unknown;
  forEachField(reader, reader.uint32() + reader.pos, {
    1: () => (key = reader.string()),
    2: () => (value = type.form === "list" ? readItems(reader, type.of) : readValue(reader, type)),
  });
  // Objects are merged field by field, and this one field would reach beyond them.
  if (key === "__proto__") throw badRequest("no field may be named __proto__");
  return [key, value ?? emptyValue(type)];
}

/** What an entry without a value has. */
function emptyValue(type: FieldType): unknown {
  if (type.form !== "scalar") return {};
  return type.name === "string" || type.name === "bytes" ? "" : null;
}

/** A list that is the value of a map stands in a message of its own. */
function readItems(reader: BinaryReader, type: FieldType): unknown[] {
  const items: unknown[] = [];
  forEachField(reader, reader.uint32() + reader.pos, { 1: () => items.push(readValue(reader, type)) });
  return items;
}

function readValue(reader: BinaryReader, type: FieldType): unknown {
  switch (type.form) {
    case "scalar":
      return readScalar(reader, type.name);
    case "object":
      return readMessage(reader, reader.uint32() + reader.pos, type.type);
    case "list":
    case "map":
      throw new Error(`a ${type.form} inside a list`);
  }
}

function readScalar(reader: BinaryReader, name: string): unknown {
  switch (name) {
    case "boolean":
      return reader.bool();
    case "int32":
      return reader.int32();
    case "int64":
      return Number(reader.int64());
    case "number":
      return reader.double();
    case "bytes":
      return Buffer.from(reader.bytes()).toString("base64");
    case "quantity":
      return readOnly(reader, () => reader.string());
    case "any":
      return parsed(readOnly(reader, () => reader.bytes()));
    case "time":
      return readTime(reader, (text) => text.replace(/\.\d+Z$/, "Z"));
    case "micro-time":
      return readTime(reader, (text) => text);
    case "int-or-string":
      return readIntOrString(reader);
    default:
      return reader.string();
  }
}

/** A message with one field. */
function readOnly<Value>(reader: BinaryReader, read: () => Value): Value | undefined {
  let value: Value | undefined;
  forEachField(reader, reader.uint32() + reader.pos, { 1: () => (value = read()) });
  return value;
}

function parsed(json: Uint8Array | undefined): unknown {
  return json === undefined || json.length === 0 ? undefined : JSON.parse(Buffer.from(json).toString());
}

function readTime(reader: BinaryReader, write: (text: string) => string): string | undefined {
  let seconds: number | undefined;
  let nanos = 0;
  forEachField(reader, reader.uint32() + reader.pos, {
    1: () => (seconds = Number(reader.int64())),
    2: () => (nanos = reader.int32()),
  });
  if (seconds === undefined) return undefined;
  const micros = String(Math.floor(nanos / 1000)).padStart(6, "0");
  return write(new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, `.${micros}Z`));
}

function readIntOrString(reader: BinaryReader): number | string {
  let isText = false;
  let number = 0;
  let text = "";
  forEachField(reader, reader.uint32() + reader.pos, {
    1: () => (isText = reader.int64().toString() === "1"),
    2: () => (number = reader.int32()),
    3: () => (text = reader.string()),
  });
  return isText ? text : number;
}
