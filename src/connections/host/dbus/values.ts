/**
 * A value on the bus. 64-bit numbers are bigint, all other numbers number; arrays, structs and dictionary entries are
 * lists; arrays of bytes are Uint8Array.
 */
export type BusValue = string | number | bigint | boolean | Uint8Array | BusVariant | readonly BusValue[];

/** A value that says itself what it is. */
export interface BusVariant {
  readonly signature: string;
  readonly value: BusValue;
}
