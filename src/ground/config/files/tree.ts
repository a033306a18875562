/** A configuration file once parsed: plain values, each with the place it was written. */
export type Tree =
  | { readonly kind: "map"; readonly entries: readonly TreeEntry[]; readonly at: Place }
  | { readonly kind: "list"; readonly items: readonly Tree[]; readonly at: Place }
  | { readonly kind: "string"; readonly value: string; readonly at: Place }
  | { readonly kind: "bool"; readonly value: boolean; readonly at: Place }
  | { readonly kind: "int"; readonly value: bigint; readonly at: Place }
  | { readonly kind: "float"; readonly value: number; readonly at: Place }
  | { readonly kind: "null"; readonly at: Place };

export interface TreeEntry {
  readonly key: string;
  readonly keyAt: Place;
  readonly value: Tree;
}

/** Both count from 1. */
export interface Place {
  readonly line: number;
  readonly column: number;
}

/** What stands there, in words, short enough for a message. */
export function describeTree(tree: Tree): string {
  switch (tree.kind) {
    case "map":
      return "a map";
    case "list":
      return "a list";
    case "null":
      return "null";
    case "string":
      return `the string ${JSON.stringify(tree.value.length > 60 ? `${tree.value.slice(0, 60)}…` : tree.value)}`;
    case "bool":
      return `the boolean ${tree.value}`;
    case "int":
    case "float":
      return `the number ${tree.value}`;
  }
}

/** The last entry of that key: what a lenient reader of repeated keys keeps. */
export function entryOf(map: Tree & { kind: "map" }, key: string): TreeEntry | undefined {
  return map.entries.findLast((entry) => entry.key === key);
}
