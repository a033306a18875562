/** The shape of a value on the bus, as its signature says (`a(sv)`, `as`, `t`…). */
export type BusType =
  | { readonly kind: "basic"; readonly code: BasicCode }
  | { readonly kind: "variant" }
  | { readonly kind: "array"; readonly element: BusType }
  /** A struct, or an entry of a dictionary; both are laid out alike. */
  | { readonly kind: "struct"; readonly fields: readonly BusType[] };

export type BasicCode = keyof typeof basicSizes;

/** Bytes of a value by itself, which is also what it is aligned to; of texts, those of their length. */
export const basicSizes = { y: 1, b: 4, n: 2, q: 2, i: 4, u: 4, x: 8, t: 8, d: 8, h: 4, s: 4, o: 4, g: 1 } as const;

/** The specification's limits; a peer that goes beyond them speaks something else than D-Bus. */
const maxSignatureLength = 255;
export const maxDepth = 32;

/** The types of the complete values that a signature lists. */
export function typesOf(signature: string): readonly BusType[] {
  if (signature.length > maxSignatureLength) throw new Error(`D-Bus signature of ${signature.length} characters`);
  const types: BusType[] = [];
  let at = 0;
  while (at < signature.length) {
    const { type, end } = typeAt(signature, at, 0);
    types.push(type);
    at = end;
  }
  return types;
}

export function alignmentOf(type: BusType): number {
  switch (type.kind) {
    case "basic":
      return basicSizes[type.code];
    case "variant":
      return 1;
    case "array":
      return 4;
    case "struct":
      return 8;
  }
}

function typeAt(signature: string, at: number, depth: number): { readonly type: BusType; readonly end: number } {
  if (depth > maxDepth) throw invalid(signature);
  const code = signature[at];
  if (code === undefined) throw invalid(signature);
  if (isBasic(code)) return { type: { kind: "basic", code }, end: at + 1 };
  if (code === "v") return { type: { kind: "variant" }, end: at + 1 };
  if (code === "a") {
    const { type: element, end } = typeAt(signature, at + 1, depth + 1);
    return { type: { kind: "array", element }, end };
  }
  const close = code === "(" ? ")" : code === "{" ? "}" : undefined;
  if (close === undefined) throw invalid(signature);
  const fields: BusType[] = [];
  let next = at + 1;
  while (signature[next] !== close) {
    const { type, end } = typeAt(signature, next, depth + 1);
    fields.push(type);
    next = end;
  }
  // Without a field a value would take no room, and an array of them would have no end.
  if (fields.length === 0) throw invalid(signature);
  return { type: { kind: "struct", fields }, end: next + 1 };
}

function isBasic(code: string): code is BasicCode {
  return Object.hasOwn(basicSizes, code);
}

function invalid(signature: string): Error {
  return new Error(`invalid D-Bus signature ${JSON.stringify(signature)}`);
}
