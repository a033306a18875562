import { type Document, isScalar, visit } from "yaml";

/**
 * Offsets of the keys that stand in the same map a second time. The YAML library can look for them itself, but compares
 * each key with all before it: a map of 30,000 keys, one megabyte of text, takes it many seconds.
 */
export function repeatedKeys(document: Document, most: number): readonly number[] {
  const offsets: number[] = [];
  visit(document, {
    Map: (_, map) => {
      const seen = new Set<unknown>();
      for (const { key } of map.items) {
        // Keys that are maps themselves are refused elsewhere, and merging (`<<`) may be repeated.
        if (!isScalar(key) || key.value === "<<") continue;
        if (seen.has(key.value)) offsets.push(key.range?.[0] ?? 0);
        seen.add(key.value);
        if (offsets.length >= most) return visit.BREAK;
      }
      return undefined;
    },
  });
  return offsets;
}
