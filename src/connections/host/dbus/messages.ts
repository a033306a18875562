import { type ByteOrder, ValueReader } from "./read-values.ts";
import type { BusValue, BusVariant } from "./values.ts";
import { writeValues } from "./write-values.ts";

const messageTypes = ["invalid", "call", "return", "error", "signal"] as const;

interface BusHeader {
  readonly type: "call" | "return" | "error" | "signal";
  readonly serial: number;
  readonly path?: string;
  readonly interface?: string;
  readonly member?: string;
  readonly errorName?: string;
  readonly replySerial?: number;
  readonly destination?: string;
  /** The bus sets it; a direct connection has none. */
  readonly sender?: string;
  readonly signature?: string;
  /** How many descriptors came along; only a transport that asked for them gets any. */
  readonly descriptors?: number;
}

export interface BusMessage extends BusHeader {
  readonly body: readonly BusValue[];
}

/** A message from outside: most are of no interest, so what it holds is only looked at when somebody asks. */
export interface ReceivedMessage extends BusHeader {
  readBody(): readonly BusValue[];
}

const fields = {
  path: { code: 1, signature: "o" },
  interface: { code: 2, signature: "s" },
  member: { code: 3, signature: "s" },
  errorName: { code: 4, signature: "s" },
  replySerial: { code: 5, signature: "u" },
  destination: { code: 6, signature: "s" },
  sender: { code: 7, signature: "s" },
  signature: { code: 8, signature: "g" },
  descriptors: { code: 9, signature: "u" },
} as const;

type FieldName = keyof typeof fields;

const fieldNames = new Map(Object.entries(fields).map(([name, { code }]) => [code as number, name as FieldName]));

const littleEndian = "l".charCodeAt(0);
const bigEndian = "B".charCodeAt(0);
const protocolVersion = 1;
/** Endianness to serial, and the length of the header fields. */
const fixedLength = 16;
const headerSignature = "yyyyuua(yv)";

/** The bus itself allows 128 MiB. What we ask for takes a few hundred bytes, so this is far beyond any honest answer. */
const maxMessageBytes = 1 << 20;
/** A header names a sender, a path and a method. */
const maxHeaderBytes = 16 << 10;

export function encodeMessage(message: BusMessage): Buffer {
  const body = writeValues(message.signature ?? "", message.body);
  const header: BusValue[] = [];
  for (const [name, { code, signature }] of Object.entries(fields)) {
    const value = message[name as FieldName];
    if (value !== undefined) header.push([code, { signature, value }]);
  }
  const type = messageTypes.indexOf(message.type);
  const head = writeValues(headerSignature, [
    littleEndian,
    type,
    0,
    protocolVersion,
    body.length,
    message.serial,
    header,
  ]);
  return Buffer.concat([head, Buffer.alloc(padding(head.length)), body]);
}

/** How many bytes the message takes that begins here; undefined while too few are here to tell. */
export function messageLength(bytes: Buffer): number | undefined {
  const order = byteOrderOf(bytes[0]);
  if (bytes.length < fixedLength) return undefined;
  const bodyLength = order === "little" ? bytes.readUInt32LE(4) : bytes.readUInt32BE(4);
  const fieldsLength = order === "little" ? bytes.readUInt32LE(12) : bytes.readUInt32BE(12);
  if (fieldsLength > maxHeaderBytes)
    throw new Error(`D-Bus header of ${fieldsLength} bytes, at most ${maxHeaderBytes} are taken`);
  const headLength = fixedLength + fieldsLength;
  const length = headLength + padding(headLength) + bodyLength;
  if (length > maxMessageBytes)
    throw new Error(`D-Bus message of ${length} bytes, at most ${maxMessageBytes} are taken`);
  return length;
}

/** Exactly one message. */
export function decodeMessage(bytes: Buffer): ReceivedMessage {
  const order = byteOrderOf(bytes[0]);
  const reader = new ValueReader(bytes, order);
  const [, type, , version, , serial, header] = reader.readAll(headerSignature);
  if (version !== protocolVersion)
    throw new Error(`D-Bus protocol version ${String(version)}, known is ${protocolVersion}`);
  const name = messageTypes[type as number];
  if (name === undefined || name === "invalid") throw new Error(`D-Bus message of type ${String(type)}`);
  const known: Partial<Record<FieldName, string | number>> = {};
  for (const [code, { signature, value }] of header as readonly (readonly [number, BusVariant])[]) {
    const field = fieldNames.get(code);
    if (field === undefined) continue;
    if (signature !== fields[field].signature) throw new Error(`D-Bus header field ${field} of type ${signature}`);
    known[field] = value as string | number;
  }
  reader.align(8);
  const bodyAt = reader.at;
  return {
    ...(known as Omit<BusHeader, "type" | "serial">),
    type: name,
    serial: serial as number,
    readBody: () => new ValueReader(bytes, order, bodyAt).readAll((known.signature as string | undefined) ?? ""),
  };
}

function byteOrderOf(mark: number | undefined): ByteOrder {
  if (mark === undefined || mark === littleEndian) return "little";
  if (mark === bigEndian) return "big";
  throw new Error(`D-Bus message that begins with ${mark}`);
}

function padding(length: number): number {
  return (8 - (length % 8)) % 8;
}
