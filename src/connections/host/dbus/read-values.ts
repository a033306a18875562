import { alignmentOf, type BasicCode, type BusType, basicSizes, maxDepth, typesOf } from "./signature.ts";
import type { BusValue } from "./values.ts";

/** Numbers on the bus are in the byte order of whoever sent them. */
export type ByteOrder = "little" | "big";

/**
 * Reads values that somebody else laid out. Whatever the bytes are, it ends with the values or with an error, reads
 * nothing beyond them, and does no more work than there are bytes.
 */
export class ValueReader {
  readonly #bytes: Buffer;
  readonly #order: ByteOrder;
  #at: number;

  constructor(bytes: Buffer, order: ByteOrder, at = 0) {
    this.#bytes = bytes;
    this.#order = order;
    this.#at = at;
  }

  get at(): number {
    return this.#at;
  }

  readAll(signature: string): readonly BusValue[] {
    return typesOf(signature).map((type) => this.#read(type, 0));
  }

  /** Skips to the next multiple. */
  align(alignment: number): void {
    const to = Math.ceil(this.#at / alignment) * alignment;
    if (to > this.#bytes.length) throw new Error("D-Bus message ends in the middle of a value");
    this.#at = to;
  }

  #read(type: BusType, depth: number): BusValue {
    // Variants may hold variants, so a signature's own depth does not bound this.
    if (depth > 2 * maxDepth) throw new Error("D-Bus value is nested too deeply");
    this.align(alignmentOf(type));
    switch (type.kind) {
      case "basic":
        return this.#basic(type.code);
      case "variant": {
        const signature = this.#text("g");
        const [only, ...others] = typesOf(signature);
        if (only === undefined || others.length > 0) throw new Error(`D-Bus variant of signature "${signature}"`);
        return { signature, value: this.#read(only, depth + 1) };
      }
      case "array":
        return this.#array(type.element, depth);
      case "struct":
        return type.fields.map((field) => this.#read(field, depth + 1));
    }
  }

  #array(element: BusType, depth: number): BusValue {
    const size = this.#unsigned(4);
    this.align(alignmentOf(element));
    const end = this.#at + size;
    if (end > this.#bytes.length) throw new Error(`D-Bus array of ${size} bytes reaches beyond its message`);
    if (element.kind === "basic" && element.code === "y") return new Uint8Array(this.#take(size));
    const values: BusValue[] = [];
    while (this.#at < end) values.push(this.#read(element, depth + 1));
    if (this.#at > end) throw new Error("D-Bus array ends in the middle of a value");
    return values;
  }

  #basic(code: BasicCode): BusValue {
    if (code === "s" || code === "o" || code === "g") return this.#text(code);
    const isLittle = this.#order === "little";
    const bytes = this.#take(basicSizes[code]);
    switch (code) {
      case "y":
        return bytes.readUInt8();
      case "b":
        return (isLittle ? bytes.readUInt32LE() : bytes.readUInt32BE()) !== 0;
      case "n":
        return isLittle ? bytes.readInt16LE() : bytes.readInt16BE();
      case "q":
        return isLittle ? bytes.readUInt16LE() : bytes.readUInt16BE();
      case "i":
        return isLittle ? bytes.readInt32LE() : bytes.readInt32BE();
      case "u":
      case "h":
        return isLittle ? bytes.readUInt32LE() : bytes.readUInt32BE();
      case "x":
        return isLittle ? bytes.readBigInt64LE() : bytes.readBigInt64BE();
      case "t":
        return isLittle ? bytes.readBigUInt64LE() : bytes.readBigUInt64BE();
      case "d":
        return isLittle ? bytes.readDoubleLE() : bytes.readDoubleBE();
    }
  }

  #text(code: "s" | "o" | "g"): string {
    const text = this.#take(this.#unsigned(basicSizes[code])).toString("utf8");
    if (this.#take(1)[0] !== 0) throw new Error("D-Bus text without its end");
    return text;
  }

  #unsigned(size: 1 | 4): number {
    this.align(size);
    const bytes = this.#take(size);
    if (size === 1) return bytes.readUInt8();
    return this.#order === "little" ? bytes.readUInt32LE() : bytes.readUInt32BE();
  }

  #take(length: number): Buffer {
    const end = this.#at + length;
    if (end > this.#bytes.length) throw new Error("D-Bus message ends in the middle of a value");
    const taken = this.#bytes.subarray(this.#at, end);
    this.#at = end;
    return taken;
  }
}
