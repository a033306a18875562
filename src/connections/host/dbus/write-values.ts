import { alignmentOf, type BasicCode, type BusType, basicSizes, typesOf } from "./signature.ts";
import type { BusValue, BusVariant } from "./values.ts";

/** The values in the bus's little-endian form, laid out as if `offset` bytes stood before them. */
export function writeValues(signature: string, values: readonly BusValue[], offset = 0): Buffer {
  const types = typesOf(signature);
  if (types.length !== values.length) throw new Error(`${values.length} values for the D-Bus signature ${signature}`);
  const writer = new Writer(offset);
  types.forEach((type, index) => {
    writer.write(type, values[index] as BusValue);
  });
  return writer.bytes();
}

class Writer {
  readonly #chunks: Buffer[] = [];
  readonly #offset: number;
  #length: number;

  constructor(offset: number) {
    this.#offset = offset;
    this.#length = offset;
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks, this.#length - this.#offset);
  }

  write(type: BusType, value: BusValue): void {
    this.#align(alignmentOf(type));
    switch (type.kind) {
      case "basic":
        this.#basic(type.code, value);
        return;
      case "variant": {
        const { signature, value: inner } = value as BusVariant;
        const [only, ...others] = typesOf(signature);
        if (only === undefined || others.length > 0) throw new Error(`a variant holds one value, not "${signature}"`);
        this.#basic("g", signature);
        this.write(only, inner);
        return;
      }
      case "array":
        this.#array(type.element, value as Uint8Array | readonly BusValue[]);
        return;
      case "struct":
        type.fields.forEach((field, index) => {
          this.write(field, (value as readonly BusValue[])[index] as BusValue);
        });
    }
  }

  #array(element: BusType, values: Uint8Array | readonly BusValue[]): void {
    const size = Buffer.alloc(4);
    this.#push(size);
    // Room before the first element does not count as part of the array.
    this.#align(alignmentOf(element));
    const start = this.#length;
    if (values instanceof Uint8Array) this.#push(Buffer.from(values));
    else for (const value of values) this.write(element, value);
    size.writeUInt32LE(this.#length - start);
  }

  #basic(code: BasicCode, value: BusValue): void {
    if (code === "s" || code === "o" || code === "g") {
      this.#text(code, value as string);
      return;
    }
    const bytes = Buffer.alloc(basicSizes[code]);
    switch (code) {
      case "y":
        bytes.writeUInt8(value as number);
        break;
      case "b":
        bytes.writeUInt32LE(value === true ? 1 : 0);
        break;
      case "n":
        bytes.writeInt16LE(value as number);
        break;
      case "q":
        bytes.writeUInt16LE(value as number);
        break;
      case "i":
        bytes.writeInt32LE(value as number);
        break;
      case "u":
      case "h":
        bytes.writeUInt32LE(value as number);
        break;
      case "x":
        bytes.writeBigInt64LE(value as bigint);
        break;
      case "t":
        bytes.writeBigUInt64LE(value as bigint);
        break;
      case "d":
        bytes.writeDoubleLE(value as number);
        break;
    }
    this.#push(bytes);
  }

  #text(code: "s" | "o" | "g", text: string): void {
    // The bus ends texts with a NUL and cuts off who sends one inside.
    if (text.includes("\0")) throw new Error("a text for D-Bus contains a NUL");
    const content = Buffer.from(text, "utf8");
    const length = Buffer.alloc(basicSizes[code]);
    if (code === "g") length.writeUInt8(content.length);
    else length.writeUInt32LE(content.length);
    this.#push(length);
    this.#push(content);
    this.#push(Buffer.alloc(1));
  }

  #align(alignment: number): void {
    const missing = (alignment - (this.#length % alignment)) % alignment;
    if (missing > 0) this.#push(Buffer.alloc(missing));
  }

  #push(bytes: Buffer): void {
    this.#chunks.push(bytes);
    this.#length += bytes.length;
  }
}
